"""What becomes of each entry of another scheduler: the same, different, or nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, Literal

from interop.entries import Entry, Refused
from minutebook.beat.instants import COUNT
from models.action.document import ParseContext, parse_action, plan_of
from models.action.plan import Plan
from models.action.policy import LONGEST_LOOK_BACK
from models.action.schedule import NO_UID
from models.errors import InvalidAction
from models.values import format_instant, parse_instant
from models.values.delays import rounded_up
from models.values.durations import format_span, parse_span
from scheduler.occurrence import next_occurrences

MINUTE = timedelta(minutes=1)
NOTHING = timedelta(0)
TWICE = "another entry has this name too"

Kind = Literal["same", "differs", "cannot"]
OUTCOMES: tuple[Kind, ...] = ("same", "differs", "cannot")
Instants = tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The next five instants of an entry as an action, and in the other scheduler if known.

    `differing` are the first two that differ: the other's and the action's, None for a missing one.
    """

    here: Instants
    there: Instants | None = None
    differing: tuple[datetime | None, datetime | None] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of an entry; `document` is None for what no action can express."""

    name: str
    where: str
    kind: Kind
    document: dict[str, Any] | None = None
    upcoming: Upcoming | None = None
    remarks: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    why: str = ""
    instead: str = ""


def outcomes(
    found: Iterable[Entry | Refused],
    context: ParseContext,
    cut_over_at: datetime | None = None,
    kept_for: timedelta = LONGEST_LOOK_BACK,
) -> Iterator[Outcome]:
    """Yield what becomes of each entry.

    With `cut_over_at` no action is due before it. None looks back longer than operations are
    kept.
    """
    seen: set[str] = set()
    for one in found:
        if isinstance(one, Entry) and one.name in seen:
            one = Refused(one.name, one.where, TWICE, "give each its own name")  # noqa: PLW2901
        seen.add(one.name)
        if isinstance(one, Refused):
            yield _cannot(one)
        else:
            yield _outcome(_within(one, kept_for), context, cut_over_at)


def _within(entry: Entry, kept_for: timedelta) -> Entry:
    look_back = entry.policy.get("look_back")
    if look_back is None or parse_span(look_back) <= kept_for:
        return entry
    most = format_span(kept_for)
    remark = (
        f"a missed run is caught up for {most}, as long as runs are kept"
        " (SCHED_RETENTION_OPERATIONS_DAYS)"
    )
    policy = {**entry.policy, "look_back": most}
    return replace(entry, policy=policy, remarks=(*entry.remarks, remark))


def _cannot(one: Refused) -> Outcome:
    return Outcome(one.name, one.where, "cannot", why=one.why, instead=one.instead)


def _outcome(entry: Entry, context: ParseContext, cut_over_at: datetime | None) -> Outcome:
    try:
        model = parse_action(entry.document, context)
    except InvalidAction as error:
        return _cannot(Refused.by(entry.name, entry.where, error))
    following = _upcoming(entry, plan_of(model), context.now)
    is_same = not (entry.remarks or following.differing)
    moved = entry if cut_over_at is None else _beginning(entry, cut_over_at)
    if isinstance(moved, Refused):
        return _cannot(moved)
    return Outcome(
        entry.name,
        entry.where,
        "same" if is_same else "differs",
        moved.document,
        following,
        entry.remarks,
        entry.unknown,
    )


def _upcoming(entry: Entry, plan: Plan, now: datetime) -> Upcoming:
    """Return the next instants of an entry, from when its scheduler's state is known.

    Jitter is left out: the other's is drawn at random.
    """
    known = entry.known
    since = now if known is None else rounded_up(known.as_of)
    here = tuple(next_occurrences(plan.without_jitter(), NO_UID, since, COUNT))
    if known is None:
        return Upcoming(here)
    # Those of the sun lie at the nearest full minute.
    slack = MINUTE if isinstance(entry.when, dict) and "solar" in entry.when else NOTHING
    return Upcoming(here, known.next_at, _differing(known.next_at, here, slack))


def _differing(
    there: Instants, here: Instants, slack: timedelta
) -> tuple[datetime | None, datetime | None] | None:
    for one, other in zip_longest(there, here):
        if one is None or other is None or abs(one - other) > slack:
            return one, other
    return None


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
