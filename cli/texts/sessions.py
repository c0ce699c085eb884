"""Links to the dashboard in words."""

from collections.abc import Iterator

from views.sessions import NewLink


def _link(made: NewLink) -> Iterator[str]:
    yield made.url


FORMS = {NewLink: _link}
