"""One action in words."""

from collections.abc import Iterator

from cli.render import Line, document_lines
from cli.texts.backfills import in_words
from services.upcoming import Action, Occurrences, Upcoming
from services.words import both_clocks, instant

SHOWN = ("uid", "standing", "health", "revision", "last_state")
INSTANTS = ("last_run_at", "last_success_at")
COUNTS = ("run_number", "failures_in_row")


def described(one: Upcoming, warnings: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield rule, next occurrences, effects of clock changes, and warnings."""
    yield from (f"  {words}" for words in one.when)
    yield from _upcoming(one)
    yield from (f"  {note}" for note in one.daylight_saving)
    yield from (f"  warning: {warning}" for warning in warnings)


def _upcoming(one: Upcoming) -> Iterator[str]:
    if not one.next and one.after is not None:
        yield "  nothing is due yet: it waits for the next end"
    elif not one.next and one.is_from_end:
        yield "  nothing is due yet: a run has not ended"
    elif one.next or not one.is_about_users:
        yield from _occurrences(Occurrences(one.next))
    else:
        yield "  no user is due yet"


def _occurrences(listed: Occurrences) -> Iterator[str]:
    if not listed.root:
        yield "  no occurrence to come"
    elif listed.root[0].is_paused:
        yield "  paused; if it is resumed now, it runs at"
    for one in listed.root:
        subject = f"   {one.subject}" if one.subject else ""
        yield f"  {one.local} {one.zone}   {instant(one.utc)}{subject}"


def _action(one: Action) -> Iterator[Line]:
    for key in SHOWN:
        yield f"{key:<16} {_or_dash(getattr(one, key))}"
    for key in INSTANTS:
        yield f"{key:<16} {both_clocks(getattr(one, key), one.zone)}"
    for key in COUNTS:
        yield f"{key:<16} {getattr(one, key)}"
    yield from described(one)
    if one.dependants:
        yield f"  then {', '.join(other.name for other in one.dependants)}"
    yield from document_lines(one.document)
    for run in one.operations:
        yield f"{instant(run.occurrence_at)}  {run.state:<9} {run.id}"
    for filled in one.backfills:
        yield f"backfill {filled.id} {in_words(filled)}"


def _or_dash(value: object) -> object:
    return "-" if value is None else value


FORMS = {Action: _action, Occurrences: _occurrences}
