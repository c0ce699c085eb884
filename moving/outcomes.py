"""What becomes of each entry of another scheduler: the same, different, or nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from models.action.document import ParseContext, parse_action, plan_of
from models.action.plan import Plan
from models.action.policy import LONGEST_LOOK_BACK
from models.errors import InvalidAction
from models.values import format_instant, parse_instant
from models.values.durations import format_span, parse_span
from moving.comparison import Difference, Upcoming, difference, upcoming
from moving.entries import Entry, Refused

COMPARED = timedelta(days=730)
TWICE = "another entry has this name too"

Kind = Literal["same", "differs", "cannot"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of an entry; `document` is None for what no action can express.

    `difference` is None where the instants were not compared.
    """

    name: str
    where: str
    kind: Kind
    document: dict[str, Any] | None = None
    difference: Difference | None = None
    upcoming: Upcoming | None = None
    remarks: tuple[str, ...] = ()
    why: str = ""
    instead: str = ""


def outcomes(
    found: Iterable[Entry | Refused],
    context: ParseContext,
    cut_over_at: datetime | None = None,
    kept_for: timedelta = LONGEST_LOOK_BACK,
) -> Iterator[Outcome]:
    """Yield what becomes of each entry, compared over two years from `context.now`.

    With `cut_over_at` no action is due before it. None looks back longer than operations are
    kept.
    """
    seen: set[str] = set()
    compared = Comparisons(context.now)
    for one in found:
        if isinstance(one, Entry) and one.name in seen:
            one = Refused(one.name, one.where, TWICE, "give each its own name")  # noqa: PLW2901
        seen.add(one.name)
        if isinstance(one, Refused):
            yield _cannot(one)
        else:
            yield _outcome(_within(one, kept_for), context, cut_over_at, compared)


def _within(entry: Entry, kept_for: timedelta) -> Entry:
    look_back = entry.policy.get("look_back")
    if look_back is None or parse_span(look_back) <= kept_for:
        return entry
    most = format_span(kept_for)
    remark = (
        f"a missed run is caught up for {most}, as long as operations are kept"
        " (SCHED_RETENTION_OPERATIONS_DAYS)"
    )
    policy = {**entry.policy, "look_back": most}
    return replace(entry, policy=policy, remarks=(*entry.remarks, remark))


def _cannot(one: Refused) -> Outcome:
    return Outcome(one.name, one.where, "cannot", why=one.why, instead=one.instead)


class Comparisons:
    """The comparisons of one import: entries with the same rule are compared once."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._made: dict[tuple[str, ...], tuple[Difference, Upcoming]] = {}

    def of(self, entry: Entry, plan: Plan) -> tuple[Difference | None, Upcoming]:
        """Return how the instants of an entry differ from its action's, and the next ones.

        None is for instants that were not compared.
        """
        if entry.fires is None:
            return None, upcoming(entry, plan, self._now)
        bounds = (entry.policy.get("starts_at"), entry.policy.get("ends_at"))
        key = (repr(entry.fires), repr(entry.when), repr(bounds))
        if key not in self._made:
            found = difference(plan, entry.fires, self._now, self._now + COMPARED)
            self._made[key] = found, upcoming(replace(entry, known=None), plan, self._now)
        compared, following = self._made[key]
        return compared, following if entry.known is None else upcoming(entry, plan, self._now)


def _outcome(
    entry: Entry, context: ParseContext, cut_over_at: datetime | None, comparisons: Comparisons
) -> Outcome:
    try:
        model = parse_action(entry.document, context)
    except InvalidAction as error:
        return _cannot(Refused.by(entry.name, entry.where, error))
    compared, following = comparisons.of(entry, plan_of(model))
    is_same = not (entry.remarks or following.differing or (compared and compared.count))
    moved = entry if cut_over_at is None else _beginning(entry, cut_over_at)
    if isinstance(moved, Refused):
        return _cannot(moved)
    return Outcome(
        entry.name,
        entry.where,
        "same" if is_same else "differs",
        moved.document,
        compared,
        following,
        entry.remarks,
    )


def _beginning(entry: Entry, at: datetime) -> Entry | Refused:
    """Return the entry with no occurrence before `at`, refused if it has none from then on."""
    when, policy = entry.when, dict(entry.policy)
    starts_at = policy.get("starts_at")
    own = parse_instant(starts_at, "UTC") if starts_at else at
    policy["starts_at"] = format_instant(max(at, own))
    if isinstance(when, dict) and "every" in when:
        when = {"starting_at": policy["starts_at"], **when}
    if isinstance(when, dict) and "due_date" in when:
        due_at = parse_instant(when["due_date"], when.get("timezone", "UTC"))
        if due_at >= at:
            return entry
        why = f"it is due before the cut-over at {format_instant(at)}"
        return Refused(entry.name, entry.where, why, "let the old scheduler run it")
    return replace(entry, when=when, policy=policy)
