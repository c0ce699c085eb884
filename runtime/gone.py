"""What earlier builds of Minutebook had, and what to use instead.

Such a name is refused like any unknown one; the error adds the sentence that stands here.
docs/explanation/scope.md gives the reasons.
"""

from collections.abc import Mapping

# Keys of documents, by their name alone.
KEYS: Mapping[str, str] = {}

# Commands, as they are typed after `minutebook`.
COMMANDS: Mapping[str, str] = {
    "app calendar": "write the dates into the app's document, as `calendars`",
    "import icalendar": "write such actions",
}

# Settings, by their variable.
SETTINGS: Mapping[str, str] = {}
