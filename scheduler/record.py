"""Record decisions before sending: operations, missed occurrences and cursors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.job import JOB
from models.operation import Cause, CausedBy, OperationState, by_action
from models.store import operations
from models.store.actions import cursors, last_ends
from models.store.actions.missed import due_among, recorded_in
from models.store.operations.causes import Causes
from models.store.operations.record import (
    counts,
    keep_newest,
    overtake,
    record_ended,
    record_new,
    running_beside,
)
from models.store.operations.reserve import Message
from models.values import format_instant
from models.worker_kinds import EXECUTE_HEAVY, EXECUTE_QUICK
from scheduler.decision import OVERTAKEN, Decision, Missed, MissedSpan, Occurrence
from scheduler.downtime import record_missed

Row = dict[str, Any]


# A tick makes one of each kind for every due action: as frozen dataclasses they take longer.
class ActionRef(NamedTuple):
    """An action and the revision that decides its operations."""

    uid: UUID
    small_app_id: int
    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class State:
    """An action, its plan, and from when its events count."""

    action: ActionRef
    plan: Plan
    effective_from: datetime


class Decided(NamedTuple):
    """One action's decision, ready to be recorded."""

    action: ActionRef
    plan: Plan
    decision: Decision


@dataclass(frozen=True, slots=True)
class Recorded:
    """New records: messages reserved for the caller, missed, overtaken and skipped occurrences."""

    messages: tuple[Message, ...] = ()
    missed: int = 0
    overtaken: int = 0
    skipped: int = 0

    def __add__(self, other: "Recorded") -> "Recorded":
        return Recorded(
            self.messages + other.messages,
            self.missed + other.missed,
            self.overtaken + other.overtaken,
            self.skipped + other.skipped,
        )


def operation_row(
    action: ActionRef, plan: Plan, id: UUID, occurrence: datetime, by: CausedBy
) -> dict[str, Any]:
    """Return a pending operation as a row."""
    return {
        "id": id,
        "small_app_id": action.small_app_id,
        "action_uid": action.uid,
        "occurrence_at": occurrence,
        "state": OperationState.PENDING.value,
        "reason": None,
        **work_columns(action, plan, by),
    }


def work_columns(action: ActionRef, plan: Plan, by: CausedBy) -> dict[str, Any]:
    """Return the columns that say what an operation does, and who caused it."""
    return {
        "revision": action.revision,
        "cause": by.cause.value,
        "triggerer": by.triggerer,
        "queue": plan.queue,
        "task": _task(plan),
        "overlap_key": None if plan.policy.overlap == "allow" else action.uid,
    }


def _task(plan: Plan) -> str:
    if plan.job is not None:
        return JOB
    if plan.hand_over is not None:
        return plan.hand_over.task
    return EXECUTE_HEAVY if plan.is_heavy else EXECUTE_QUICK


def record(connection: sa.Connection, decided: Sequence[Decided]) -> Recorded:
    """Record decisions in the caller's transaction, with messages reserved for the caller.

    A duplicate is a no-op.
    """
    due = [row for one in decided if one.decision.due for row in _rows(one, one.decision.due)]
    missed = [row for one in decided if one.decision.missed for row in _missed_rows(one)]
    running = _running_beside(connection, decided)
    beside, due = _parted(due, running)
    new = record_new(connection, due)
    skipped = record_ended(connection, beside)
    count = record_missed(connection, missed, _span_rows(connection, decided))
    sent = [row for row in due if row["id"] in new]
    uids = {row["action_uid"] for row in sent}
    messages = tuple(Message(row["id"], 1, row["task"], row["queue"]) for row in sent)
    return Recorded(messages, count, _overtake(connection, decided, uids), skipped)


def _running_beside(connection: sa.Connection, decided: Sequence[Decided]) -> Mapping[UUID, UUID]:
    """Return what runs of actions whose occurrences are skipped meanwhile, as by a take."""
    skipping = {
        one.action.uid
        for one in decided
        if one.decision.due
        and (one.plan.policy.overlap, one.plan.policy.catch_up) == ("skip", "latest")
    }
    if not skipping:
        return {}
    running = running_beside(connection)
    return {uid: id for uid, id in running.items() if uid in skipping}


def _parted(due: list[Row], running: Mapping[UUID, UUID]) -> tuple[list[Row], list[Row]]:
    """Return what is skipped beside the runs of its action, as such, and what is not."""
    if not running:
        return [], due
    skipped = [
        {
            **row,
            "state": OperationState.SKIPPED.value,
            "reason": operations.OVERLAP.format(running[row["action_uid"]]),
        }
        for row in due
        if row["action_uid"] in running
    ]
    return skipped, [row for row in due if row["action_uid"] not in running]


def advance(connection: sa.Connection, decided: Sequence[Decided]) -> None:
    """Move the cursors to the ends of the decisions."""
    moves = [
        {
            "action_uid": one.action.uid,
            "watermark": one.decision.watermark,
            "next_occurrence_at": one.decision.next_occurrence_at,
        }
        for one in decided
    ]
    cursors.advance(connection, moves)
    ends = {
        one.action.uid: one.decision.ended_at
        for one in decided
        if one.decision.ended_at is not None
    }
    last_ends.keep(connection, ends)


def _missed_rows(one: Decided) -> Iterator[dict[str, Any]]:
    found = one.decision.missed
    rows = _rows(one, [missed.occurrence for missed in found])
    for row, missed in zip(rows, found, strict=True):
        row["state"], row["reason"] = OperationState.MISSED.value, _why(one, missed)
        yield row


def _why(one: Decided, missed: Missed) -> str:
    """Return why an occurrence is missed, with the one that overtook it."""
    if missed.reason != OVERTAKEN or not one.decision.due:
        return missed.reason
    return f"{OVERTAKEN} by {format_instant(one.decision.due[-1].at)}"


def _rows(one: Decided, occurrences: Sequence[Occurrence]) -> Iterator[dict[str, Any]]:
    """Yield occurrences of a decision, all by the clock or all of events, as pending operations."""
    uid, first = one.action.uid, occurrences[0]
    row = operation_row(one.action, one.plan, first.id_of(uid), first.at, _cause(one, first))
    yield row | _of_event(first)
    for later in occurrences[1:]:
        yield row | {"id": later.id_of(uid), "occurrence_at": later.at} | _of_event(later)


def _cause(one: Decided, occurrence: Occurrence) -> CausedBy:
    if occurrence.event is None:
        return by_action(one.action.name)
    return by_action(one.action.name, Cause.EVENT, one.plan.watched)


def _of_event(occurrence: Occurrence) -> dict[str, Any]:
    event = occurrence.event
    if event is None:
        return {}
    return {
        "subject": event.subject,
        "event_id": event.event_id,
        "event_at": event.at,
        # Overlap applies only to occurrences of the clock.
        "overlap_key": None,
    }


def _span_rows(connection: sa.Connection, decided: Sequence[Decided]) -> list[dict[str, Any]]:
    """Return missed spans as rows; none whose occurrences all have an operation."""
    found = [
        (one, _span_row(one.action, span))
        for one in decided
        if (span := one.decision.missed_span) is not None
    ]
    # What events missed was looked up before it was decided.
    clocked = [(one, row) for one, row in found if one.plan.on_event is None]
    recorded = recorded_in(connection, [row for _, row in clocked])
    for (one, row), those in zip(clocked, recorded, strict=True):
        due_at = one.decision.due_at
        earlier = {id: at for id, at in those.items() if at not in due_at}
        row["count"] -= due_among(one.plan, one.action.uid, earlier)
    return [row for _, row in found if row["count"] > 0]


def _span_row(action: ActionRef, span: MissedSpan) -> dict[str, Any]:
    return {
        "action_uid": action.uid,
        "revision": action.revision,
        "first_at": span.first_at,
        "last_at": span.last_at,
        "count": span.count,
        "reason": span.reason,
        "decided_at": span.decided_at,
    }


def _overtake(connection: sa.Connection, decided: Sequence[Decided], uids: set[UUID]) -> int:
    """Skip operations that newer ones of these actions overtake, except under catch-up `all`."""
    clocked = [one for one in decided if one.action.uid in uids and one.plan.on_event is None]
    newest = [
        (one.action.uid, one.decision.due[-1].at)
        for one in clocked
        if one.plan.policy.overlap in {"skip", "replace"} and one.plan.policy.catch_up == "latest"
    ]
    overtaken = overtake(connection, newest)
    queued = {
        one.action.uid: one.plan.policy.max_waiting
        for one in clocked
        if one.plan.policy.overlap == "queue" and one.plan.policy.catch_up == "latest"
    }
    several = counts(connection, queued)
    surplus = [uid for uid, count in several.items() if count > queued[uid] + 1]
    if not surplus:
        return overtaken
    causes = Causes(connection)
    return overtaken + sum(keep_newest(connection, uid, queued[uid], causes) for uid in surplus)
