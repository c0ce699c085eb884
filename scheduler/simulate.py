"""Run the decisions of the tick on a virtual clock: pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import chain, count
from uuid import UUID

from models.action.plan import Plan
from models.action.schedule import BEGINNING
from models.events import Happened
from models.fingerprint import str_to_uuid
from models.operation import OperationState
from models.values.delays import due_after
from scheduler.decision import (
    Decision,
    decide,
    decide_events,
    decisions,
    event_window,
    occurrence_of,
)
from scheduler.occurrence import next_occurrence

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
SUCCESS = OperationState.SUCCESS.value
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

    def last_tick(self, before: datetime) -> datetime:
        """Return the last tick before a tick."""
        found = before - self.tick
        for begin, end in sorted(self.outages, reverse=True):
            if begin <= found < end:
                found = self.on_grid(begin) - self.tick
        return found

    def on_grid(self, at: datetime) -> datetime:
        """Return the first multiple of `tick` at or after an instant, outage or not."""
        midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + -((midnight - at) // self.tick) * self.tick


# A tick to make: its instant, the action's number, and its watermark.
Entry = tuple[datetime, int, datetime]


def simulate(
    actions: Sequence[Simulated], since: datetime, until: datetime, timetable: Timetable
) -> Iterator[SimulatedOutcome]:
    """Yield the outcome of every occurrence in (since, until], tick by tick.

    Actions were created at `since`. Ticks with nothing due are skipped. An operation counts as
    successful as soon as it is sent, and then makes its dependants due.
    """
    fates = _by_the_clock(actions, since, until, timetable)
    dependants = _dependants(actions)
    if not dependants:
        yield from fates
        return
    # By tick; those of one tick in the order in which they were found.
    waiting: list[tuple[datetime, int, SimulatedOutcome]] = []
    numbers = count()
    for one in chain(fates, [None]):
        if one is not None:
            heappush(waiting, (one.decided_at, next(numbers), one))
        while waiting and (one is None or waiting[0][0] < one.decided_at):
            fate = heappop(waiting)[-1]
            yield fate
            for then in _made_due(fate, dependants, until, timetable):
                heappush(waiting, (then.decided_at, next(numbers), then))


def _dependants(actions: Sequence[Simulated]) -> dict[str, list[Simulated]]:
    """Return the actions that success of another one makes due, by its name."""
    found: dict[str, list[Simulated]] = {}
    for one in actions:
        rule = one.plan.on_event
        if one.plan.active and rule and rule.watched and SUCCESS in rule.ends:
            found.setdefault(rule.watched, []).append(one)
    return found


def _made_due(
    fate: SimulatedOutcome,
    dependants: Mapping[str, Sequence[Simulated]],
    until: datetime,
    timetable: Timetable,
) -> Iterator[SimulatedOutcome]:
    """Yield the outcomes that an operation's success at its sending has for its dependants."""
    if fate.fate != SENT:
        return
    end = Happened(0, fate.decided_at, None, "", active=True, activated_at=None, state=SUCCESS)
    for one in dependants.get(fate.action.name, ()):
        rule = one.plan.on_event
        due_at = None if rule is None else due_after(end.at, rule.lag)
        if due_at is None or due_at > until:
            continue
        # It ends after its tick: a later one decides.
        at = timetable.first_tick(max(due_at, end.at + SECOND))
        window = event_window(one.plan, BEGINNING, at, timetable.last_tick(at))
        occurrence = occurrence_of((one.plan, one.uid), end, due_at, window)
        if occurrence is None:
            continue
        if at > timetable.on_grid(until) and timetable.ends_outage(at):
            yield SimulatedOutcome(one, due_at, due_at, 1, UNDECIDED, "the daemon is down", until)
        else:
            yield from _fates(one, decide_events([occurrence], window), at, until)


def _by_the_clock(
    actions: Sequence[Simulated], since: datetime, until: datetime, timetable: Timetable
) -> Iterator[SimulatedOutcome]:
    agenda: list[Entry] = []
    for number, action in enumerate(actions):
        following = next_occurrence(action.plan.from_last_end(since, None), action.uid, since)
        if following is not None and following <= until:
            at = timetable.first_tick(following)
            heappush(agenda, (at, number, since))
    while agenda:
        at, number, watermark = heappop(agenda)
        action = actions[number]
        if at > timetable.on_grid(until) and timetable.ends_outage(at):
            yield from _undecided(action, since, watermark, until)
            continue
        # The last run of an interval from the end ended at the tick that sent it.
        ended_at = None if watermark == since else watermark
        plan = action.plan.from_last_end(since, ended_at)
        decision = decide(plan, action.uid, watermark, at)
        yield from _fates(action, decision, at, until)
        following = decision.next_occurrence_at
        if plan.from_end is not None:
            following = next_occurrence(plan.from_last_end(since, at), action.uid, at)
        if following is not None and following <= until:
            # Never the same tick again: it may have left occurrences for the next one.
            then = timetable.first_tick(max(following, at + SECOND))
            heappush(agenda, (then, number, decision.watermark))


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


def _undecided(
    action: Simulated, since: datetime, watermark: datetime, until: datetime
) -> Iterator[SimulatedOutcome]:
    """Yield the occurrences that no tick decides, as one fate."""
    found, ends = 0, []
    plan = action.plan.from_last_end(since, None if watermark == since else watermark)
    for rest in decisions(plan, action.uid, watermark, until):
        ends += [*rest.due_at, *(one.at for one in rest.missed)]
        ends += [rest.missed_span.first_at] if rest.missed_span else []
        found += len(rest.due) + rest.missed_count
    yield SimulatedOutcome(
        action, min(ends), max(ends), found, UNDECIDED, "the daemon is down", until
    )


def busiest(fates: Iterable[SimulatedOutcome], most: int) -> list[tuple[datetime, int]]:
    """Return up to `most` ticks with their counts of sent occurrences, the busiest first."""
    sent = Counter(one.decided_at for one in fates if one.fate == SENT)
    return sorted(sent.items(), key=lambda item: (-item[1], item[0]))[:most]
