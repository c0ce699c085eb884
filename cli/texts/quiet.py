"""The quiet period in words."""

from collections.abc import Iterator

from models.values import counted
from views.quiet import QuietPeriod
from views.words import instant


def _period(found: QuietPeriod) -> Iterator[str]:
    if found.until is None and found.was_until is None:
        yield "there is no quiet period; nothing was changed"
        return
    waiting = counted(found.waiting, "operation")
    if found.until is None:
        yield f"the quiet period is over; the next tick sends {waiting}"
        return
    yield f"quiet until {instant(found.until)}: what is due is recorded, and sent then"
    if found.was_until is not None:
        yield f"  it was to end at {instant(found.was_until)}; waiting: {waiting}"


FORMS = {QuietPeriod: _period}
