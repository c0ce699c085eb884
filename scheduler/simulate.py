"""Run the decisions of the tick on a virtual clock: pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from uuid import UUID

from models.action.plan import Plan
from models.fingerprint import str_to_uuid
from scheduler.decision import Decision, decide
from scheduler.occurrence import next_occurrence, occurrences_between

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
SENT = "sent"
MISSED = "missed"
# The daemon was down from the occurrence to the end of the simulation.
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Simulated:
    """An action to simulate."""

    name: str
    plan: Plan
    uid: UUID

    @staticmethod
    def named(name: str, plan: Plan) -> "Simulated":
        """Return an action that is not stored; its jitter will differ once it is."""
        return Simulated(name, plan, str_to_uuid(f"simulated | {name}"))


@dataclass(frozen=True, slots=True)
class SimulatedOutcome:
    """The outcome of `count` occurrences of an action from `first_at` to `last_at`.

    `fate` is sent, missed or undecided; `decided_at` is the tick's instant. Only older missed
    occurrences are grouped, as the tick records them.
    """

    action: Simulated
    first_at: datetime
    last_at: datetime
    count: int
    fate: str
    reason: str
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class Timetable:
    """When the daemon ticks: at each multiple of `tick` since midnight, except during outages.

    An outage is a span [from, to).
    """

    outages: tuple[tuple[datetime, datetime], ...] = ()
    tick: timedelta = MINUTE

    def first_tick(self, at: datetime) -> datetime:
        """Return the first tick at or after an instant."""
        found = self.on_grid(at)
        for begin, end in sorted(self.outages):
            if begin <= found < end:
                found = self.on_grid(end)
        return found

    def ends_outage(self, at: datetime) -> bool:
        """Return whether a tick is the first after an outage."""
        before = at - self.tick
        return any(begin <= before < end for begin, end in self.outages)

    def on_grid(self, at: datetime) -> datetime:
        """Return the first multiple of `tick` at or after an instant, outage or not."""
        midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + -((midnight - at) // self.tick) * self.tick


def simulate(
    actions: Sequence[Simulated], since: datetime, until: datetime, timetable: Timetable
) -> Iterator[SimulatedOutcome]:
    """Yield the outcome of every occurrence in (since, until], tick by tick.

    Actions were created at `since`. Ticks with nothing due are skipped. What is due on events or
    after another action is left out.
    """
    of_each = (_outcomes(one, since, until, timetable) for one in actions)
    return merge(*of_each, key=lambda one: one.decided_at)


def _outcomes(
    action: Simulated, since: datetime, until: datetime, timetable: Timetable
) -> Iterator[SimulatedOutcome]:
    at = watermark = since
    plan, uid = action.plan.from_last_end(since, None), action.uid
    following = next_occurrence(plan, uid, since)
    while following is not None and following <= until:
        # Never the same tick again: it may have left occurrences for the next one.
        at = timetable.first_tick(max(following, at + SECOND))
        if at > timetable.on_grid(until) and timetable.ends_outage(at):
            left = occurrences_between(plan, uid, watermark, until)
            ends = (left[0], left[-1], len(left))
            yield SimulatedOutcome(action, *ends, UNDECIDED, "the daemon is down", until)
            return
        decision = decide(plan, uid, watermark, at)
        yield from _fates(action, decision, at, until)
        watermark, following = decision.watermark, decision.next_occurrence_at
        if plan.from_end is not None:
            # The run ends at the tick that sent it.
            plan = action.plan.from_last_end(since, at)
            following = next_occurrence(plan, uid, at)


def _fates(
    action: Simulated, decision: Decision, at: datetime, until: datetime
) -> Iterator[SimulatedOutcome]:
    span = decision.missed_span
    if span is not None:
        yield SimulatedOutcome(
            action, span.first_at, span.last_at, span.count, MISSED, span.reason, at
        )
    one_by_one = [(one.at, MISSED, one.reason) for one in decision.missed]
    one_by_one += [(due_at, SENT, "") for due_at in decision.due_at]
    for instant, fate, reason in sorted(one_by_one):
        if instant <= until:
            yield SimulatedOutcome(action, instant, instant, 1, fate, reason, at)


def busiest(fates: Iterable[SimulatedOutcome], most: int) -> list[tuple[datetime, int]]:
    """Return up to `most` ticks with their counts of sent occurrences, the busiest first."""
    sent = Counter(one.decided_at for one in fates if one.fate == SENT)
    return sorted(sent.items(), key=lambda item: (-item[1], item[0]))[:most]
