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
    if not one.next:
        yield f"  {why_nothing(one)}"
    elif one.next[0].is_paused:
        yield "  paused; if it is resumed now, it runs at"
    for due in one.next:
        subject = f"   {due.subject}" if due.subject else ""
        yield f"  {due.local} {due.zone}   {instant(due.utc)}{subject}"


def _occurrences(listed: Occurrences, *, whole: Upcoming | None = None) -> Iterator[str]:
    yield from _upcoming(whole or Upcoming(when=(), zone="UTC", next=listed.root))


def why_nothing(one: Upcoming) -> str:
    """Return why no occurrence of an action is known."""
    if one.after is not None:
        return "nothing is due yet: it waits for the next end"
    if one.is_from_end:
        return "nothing is due yet: a run has not ended"
    return "no user is due yet" if one.is_about_users else "no occurrence to come"


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
