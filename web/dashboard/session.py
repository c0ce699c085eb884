"""Who looks at a page, and what they may do: a session that a token opened."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from models.roles import PERMITS, Permission, Role
from views.installation import Installation


@dataclass(frozen=True)
class Visitor:
    """The person at the browser; `opened` is the installation as they see it."""

    opened: Installation
    role: Role
    # The small app that the session is bound to; None for the whole installation.
    app_name: str | None
    # To be sent back with every change.
    csrf: str
    # The fields of a change's form.
    form: Mapping[str, str] = field(default_factory=dict)

    def may(self, permission: str) -> bool:
        """Return whether the role permits something: `operate`, `edit`."""
        return Permission(permission) in PERMITS[self.role]
