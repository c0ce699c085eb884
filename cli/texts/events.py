"""Events in words."""

from collections.abc import Iterator

from views.events import SentEvent
from views.words import instant


def _sent(one: SentEvent) -> Iterator[str]:
    what = one.event if one.id is None else f"{one.event} {one.id}"
    match one.change:
        case "sent":
            yield f"sent {what} of {one.user}, {instant(one.at)}"
        case "known":
            yield f"{what} already exists; nothing changed"
        case _:
            yield f"{what} of {one.user} is {instant(one.at)} already; nothing changed"
    for name in one.too_late_for:
        yield f"  warning: too late for {name}; see its policy.look_back"


FORMS = {SentEvent: _sent}
