"""Find the occurrences that events make due in the windows of actions, and decide them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

import sqlalchemy as sa

from models.action.event_rules import EventRule
from models.action.plan import Plan
from models.events import Happened
from models.store.operations.record import recorded_among
from models.store.people import events
from models.store.people.events import Range
from models.values.delays import due_after, events_due
from scheduler.decision import EventWindow, Occurrence, decide_events, event_window, occurrence_of
from scheduler.record import ActionRef, Decided, State


@dataclass(frozen=True, slots=True)
class Watched:
    """An event action and its window."""

    action: ActionRef
    plan: Plan
    rule: EventRule
    window: EventWindow


def watched_of(state: State, now: datetime, decided: datetime | None) -> Watched:
    """Return an event action with its window up to `now`; events are decided up to `decided`.

    Raises ValueError for a plan without an event.
    """
    rule = state.plan.on_event
    if rule is None:
        raise ValueError("the plan of this event action has no event; apply its document again")
    window = event_window(state.plan, state.effective_from, now, decided)
    return Watched(state.action, state.plan, rule, window)


# An occurrence of an action.
Found = tuple[Watched, Occurrence]


def decided_by_events(
    connection: sa.Connection, watched: Iterable[Watched]
) -> Iterator[list[Decided]]:
    """Yield decisions about the events of these actions without an operation, in batches.

    A batch has one decision of each of its actions; an action may be in many batches.
    """
    for some in undecided(connection, watched):
        of_action: dict[UUID, tuple[Watched, list[Occurrence]]] = {}
        for one, occurrence in some:
            of_action.setdefault(one.action.uid, (one, []))[1].append(occurrence)
        yield [
            Decided(one.action, one.plan, decide_events(found, one.window))
            for one, found in of_action.values()
        ]


def undecided(connection: sa.Connection, watched: Iterable[Watched]) -> Iterator[list[Found]]:
    """Yield the occurrences of these actions in their windows without an operation, in batches.

    Each action's filter selects the users. Actions with equal event and delay share a query.
    """
    groups = _groups(watched)
    ranges: list[Range] = []
    asked: list[list[Watched]] = []
    for (app, event, delay), sharing in groups.items():
        since = min(one.window.since for one in sharing)
        until = max(one.window.until for one in sharing)
        happened_in = events_due(since, until, delay)
        if happened_in is not None:
            ranges.append(Range(len(asked), app, event, *happened_in))
            asked.append(sharing)
    for some in events.happened(connection, ranges):
        found = (
            one
            for happened in _with_groups(connection, some, asked)
            for one in _made_due(happened, asked[happened.number])
        )
        # Many actions may share an event: a batch of events may be many operations.
        while part := list(islice(found, events.BATCH)):
            ids = [occurrence.id_of(one.action.uid) for one, occurrence in part]
            known = recorded_among(connection, ids)
            fresh = [one for one, id in zip(part, ids, strict=True) if id not in known]
            if fresh:
                yield fresh


def _made_due(event: Happened, sharing: Sequence[Watched]) -> Iterator[Found]:
    due_at = due_after(event.at, sharing[0].rule.lag)
    for one in sharing:
        occurrence = occurrence_of((one.plan, one.action.uid), event, due_at, one.window)
        if occurrence is not None:
            yield one, occurrence


def _groups(watched: Iterable[Watched]) -> dict[tuple[int, str, timedelta], list[Watched]]:
    groups: dict[tuple[int, str, timedelta], list[Watched]] = {}
    for one in watched:
        key = (one.action.small_app_id, one.rule.event, one.rule.lag)
        groups.setdefault(key, []).append(one)
    return groups


def _with_groups(
    connection: sa.Connection, found: Sequence[Happened], asked: Sequence[Sequence[Watched]]
) -> list[Happened]:
    """Return events, with their users' groups if an action filters by groups."""
    wanted: dict[int, list[Happened]] = {}
    plain: list[Happened] = []
    for one in found:
        sharing = asked[one.number]
        if any(watched.plan.selects_by_groups for watched in sharing):
            wanted.setdefault(sharing[0].action.small_app_id, []).append(one)
        else:
            plain.append(one)
    for app, some in wanted.items():
        plain += events.with_groups(connection, app, some)
    return plain
