"""Hand tasks to the user's own application: begin, settle, or decide in doubt.

`send_started_at` is committed before sending. After that, only a certain outcome moves the row: the
broker accepted the message, or it did not. If that is uncertain, the operation fails when its
reservation expires: a task is never sent twice in one attempt.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import NOTHING_PLANNED, Plan
from models.celery_task import CeleryRules, HandOver
from models.errors import LeaseLost
from models.operation import UNSTARTED, AttemptKey, OperationState
from models.sql import database_now, in_unindexed
from models.store import notices, workers
from models.store.conditions import ITS_REVISION
from models.store.operations import RESERVED_FOR
from models.store.operations.end import PLAN, Outcome, end, end_at_least
from models.store.operations.put_back import failed
from models.store.operations.reserve import Message
from models.store.operations.start_checks import refuse, why_not
from models.store.operations.take import IS_WANTED, recorded_of
from models.store.operations.transitions import PENDING, SENT_ONCE_MORE, fenced, move
from models.tables import SENDABLE, operations, revisions, small_apps
from models.values import format_instant
from runtime.sections import AlertSettings

# A later tick, not this one, sends again what the broker refused.
REFUSED_FOR = timedelta(seconds=15)
# A worker seen within this span still follows, perhaps after a restart.
FOLLOWED_WITHIN = timedelta(minutes=10)
# How long an accepted message may wait in its queue.
TAKEN_WITHIN = timedelta(hours=1)
UNCERTAIN = "send uncertain"
UNSENDABLE = "send refused"
UNCERTAIN_ERROR = "it is uncertain whether the broker took the message: it was not sent again"
NO_TASK = "its action no longer names the task to send"
UNFOLLOWED = "no worker follows it"
NOT_TAKEN = "no worker that follows it has started it within an hour"

# The conditions of what its sender left without an outcome.
IN_DOUBT = (
    sa.text(SENDABLE),
    operations.c.not_before <= database_now(),
    operations.c.send_started_at.is_not(None),
)


@dataclass(frozen=True, slots=True)
class Handed:
    """A message to the user's own application, reserved for this process."""

    id: UUID
    attempt: int
    queue: str
    hand_over: HandOver
    # The facts about its operation in the message.
    header: dict[str, Any]


def begin(
    connection: sa.Connection,
    messages: Sequence[Message],
    rules: CeleryRules,
    alerts: AlertSettings,
) -> list[Handed]:
    """Mark these reserved operations as being sent; return those that may be sent.

    If the action was paused or deleted meanwhile, the operation is skipped, or fails after a
    failed attempt; if its task is not allowed here, it fails. The caller commits before it sends.
    """
    wanted = {message.id: message.attempt for message in messages}
    rows = connection.execute(_READY.where(operations.c.id.in_(list(wanted)))).all()
    ready = []
    for row in rows:
        if row.attempt != wanted[row.id] or not _may_start(connection, row, alerts):
            continue
        handed = row.plan.hand_over if isinstance(row.plan, Plan) else None
        refused = _refused(handed, row.queue, rules.within(replace(row.trust, app=row.app)))
        if handed is None or refused is not None:
            _fail(connection, (row.id, row.attempt), refused or NO_TASK, alerts)
            continue
        ready.append(Handed(row.id, row.attempt, row.queue, handed, _header(row)))
    begun = sa.update(operations).where(operations.c.id.in_([one.id for one in ready]))
    if ready:
        values = {"send_started_at": database_now(), "not_before": database_now(RESERVED_FOR)}
        connection.execute(begun.values(values))
    return ready


_READY = (
    sa.select(
        operations.c.id,
        operations.c.attempt,
        operations.c.queue,
        operations.c.occurrence_at,
        operations.c.subject,
        operations.c.triggerer,
        IS_WANTED.label("is_wanted"),
        revisions.c.plan,
        small_apps.c.trust,
        small_apps.c.name.label("app"),
    )
    .join(small_apps, small_apps.c.id == operations.c.small_app_id)
    .join(revisions, ITS_REVISION)
    .where(in_unindexed(operations.c.state, PENDING))
    .where(operations.c.send_started_at.is_(None), operations.c.waiting_for.is_(None))
    # Their ends lock the state of their actions in this order.
    .order_by(operations.c.action_uid, operations.c.id)
    .with_for_update(of=operations, skip_locked=True)
)


def _may_start(connection: sa.Connection, row: sa.Row[Any], alerts: AlertSettings) -> bool:
    """End an operation that its action or subject rules out: its start is not checked later."""
    if row.is_wanted and row.subject is None:
        return True
    recorded = recorded_of(connection, row.id, row.attempt)
    if recorded is None:
        return False
    reason = why_not(connection, recorded)
    if reason is None:
        return True
    kept = refuse(connection, recorded, reason, alerts)
    if kept.ended is not None:
        notices.send_soon(connection, kept.ended.owed)
    return False


def _refused(handed: HandOver | None, queue: str, rules: CeleryRules) -> str | None:
    refused = None if handed is None else next(rules.refused(handed, queue), None)
    if handed is None or refused is None:
        return None
    key, value, why = refused
    named = "" if key == "task" else f"its {key} {value!r} "
    return f"the task {handed.task!r} was not sent: in the process that sends it, {named}{why}"


def _header(row: sa.Row[Any]) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "attempt": row.attempt,
        "occurrence_at": format_instant(row.occurrence_at),
        "subject": row.subject,
        "triggerer": row.triggerer,
    }


def settle(
    connection: sa.Connection,
    accepted: Sequence[Handed],
    refused: Sequence[Handed],
    alerts: AlertSettings,
) -> None:
    """Mark messages that the broker accepted, and release those it refused.

    If a live worker follows the task, its operation is queued; otherwise it is handed over.
    """
    followed = workers.followed_tasks(connection, FOLLOWED_WITHIN) if accepted else ()
    for one in accepted:
        if one.hand_over.task not in followed:
            hand_over(connection, (one.id, one.attempt), UNFOLLOWED, alerts)
        elif not connection.execute(_queued(one)).rowcount:
            connection.execute(_noted(one))
    for one in refused:
        connection.execute(_released(one))


def fail_unsendable(
    connection: sa.Connection, found: Iterable[tuple[Handed, str]], alerts: AlertSettings
) -> None:
    """Fail unstarted operations whose messages no broker will ever take, each with its error."""
    for one, error in found:
        text = f"its message to queue {one.queue} was refused: {error}"
        _fail(connection, (one.id, one.attempt), text, alerts, UNSENDABLE)


def _queued(one: Handed) -> sa.Update:
    return move(
        OperationState.QUEUED,
        fenced(one.id, one.attempt),
        # Else its worker has claimed it meanwhile, and it waits for another operation.
        operations.c.send_started_at.is_not(None),
        since=PENDING,
        # It is never sent again: after that, no following worker has claimed it.
        not_before=database_now(TAKEN_WITHIN),
        sendings=SENT_ONCE_MORE,
    )


def _noted(one: Handed) -> sa.Update:
    """Count the sending of a message whose task began before this."""
    began = sa.update(operations).where(
        fenced(one.id, one.attempt), operations.c.state.not_in(PENDING), operations.c.sendings == 0
    )
    return began.values(sendings=1)


def _released(one: Handed) -> sa.Update:
    is_pending = in_unindexed(operations.c.state, PENDING)
    released = sa.update(operations).where(fenced(one.id, one.attempt), is_pending)
    return released.values(send_started_at=None, not_before=database_now(REFUSED_FOR))


def decide_doubtful(
    connection: sa.Connection, limit: int, alerts: AlertSettings
) -> list[tuple[UUID, str]]:
    """Decide operations whose sender fell silent while sending; return ids and new states.

    An attempt whose message may have been taken has failed; the policy of retries may send it in
    the next one. One queued for a following worker and not claimed counts as handed over: if its
    message still arrives, the worker claims it.
    """
    overdue = (
        sa.select(
            operations.c.id, operations.c.attempt, operations.c.state, operations.c.failures, PLAN
        )
        .where(*IN_DOUBT)
        .order_by(operations.c.not_before)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    decided = []
    for row in connection.execute(overdue).all():
        its = (row.id, row.attempt)
        if row.state == OperationState.QUEUED:
            hand_over(connection, its, NOT_TAKEN, alerts)
            decided.append((row.id, "handed_over"))
        else:
            # A broken plan has no retries, and must not keep others in doubt.
            plan = row.plan if isinstance(row.plan, Plan) else NOTHING_PLANNED
            ending = failed(plan, row.failures, UNCERTAIN_ERROR)
            if ending.state is OperationState.FAILED:
                ending = replace(ending, reason=UNCERTAIN)
            _end(connection, its, ending, alerts)
            decided.append((row.id, ending.state))
    return decided


def hand_over(
    connection: sa.Connection, its: tuple[UUID, int], reason: str, alerts: AlertSettings
) -> None:
    """End a sent attempt (id, number) that no worker follows; nothing if one has claimed it."""
    _end(connection, its, Outcome(OperationState.HANDED_OVER, reason=reason), alerts)


def _fail(
    connection: sa.Connection,
    its: tuple[UUID, int],
    error: str,
    alerts: AlertSettings,
    reason: str = "not allowed",
) -> None:
    fault = Outcome(OperationState.FAILED, error=error, reason=reason, is_failure=True)
    _end(connection, its, fault, alerts)


def _end(
    connection: sa.Connection, its: tuple[UUID, int], ending: Outcome, alerts: AlertSettings
) -> None:
    """End an attempt that no worker has claimed."""
    ending, key = replace(ending, since=UNSTARTED), AttemptKey(*its)

    def act() -> None:
        with suppress(LeaseLost):
            notices.send_soon(connection, end(connection, key, ending, alerts=alerts).owed)

    end_at_least(connection, its[0], ending, act)


def await_message(
    connection: sa.Connection, operation_id: UUID, attempt: int, delay: timedelta
) -> None:
    """Let an attempt wait for the message of a retry that Celery sends itself after `delay`."""
    waits = move(
        OperationState.QUEUED,
        fenced(operation_id, attempt),
        since=PENDING,
        send_started_at=database_now(),
        not_before=database_now(delay + TAKEN_WITHIN),
    )
    connection.execute(waits)
