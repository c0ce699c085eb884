"""Alert on operations that were not started in time: one alert per action."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.action.plan import hooks_of
from models.carriers import HTTP, carrier_of
from models.notices import NoticeKind, quiet_until, targets_of
from models.operation import OperationState
from models.sql import database_now, in_literals, insert_ignoring, read_clock
from models.store import notices, workers
from models.store.conditions import IS_EXPECTED, IS_LIVE, state_of
from models.store.notices import Origin
from models.store.notices.alerting import alert_targets
from models.store.operations import MORE_WAITED, OVERTAKEN
from models.store.pauses import was_paused
from models.tables import action_state, actions, operations, small_apps
from models.values import format_instant
from runtime.sections import AlertSettings


def alert(
    connection: sa.Connection, alerts: AlertSettings, limit: int, *, overtook: bool = False
) -> list[tuple[str, str]]:
    """Enqueue an alert for each newly overdue action; return names and reasons.

    An action that ran within the same span is not overdue, even if one of its operations waits.
    `overtook`: newer operations replaced unstarted ones, so that none grows old. The update's
    condition and the notice's id let only one of two daemons do it.
    """
    asked = _asked(alerts) | {"most": limit}
    # What waited for the end of a pause is sent soon after it.
    sent = sa.not_(was_paused(operations.c, alerts.overdue))
    found = list(connection.execute(_OVERDUE.where(sent), asked))
    if overtook:
        found += connection.execute(_OVERTAKEN.where(sent), asked)
    if not found:
        return []
    now = read_clock(connection)
    listened = workers.listened_queues(connection, workers.GONE)
    # In one order, so that two daemons never deadlock.
    first = {row.action_uid: row for row in reversed(found)}
    alerted = []
    for _, row in sorted(first.items()):
        if _mark(connection, row):
            reason = _reason(row, listened)
            _enqueue(connection, row, reason, alerts, now)
            alerted.append((row.action, reason))
    return alerted


def _asked(alerts: AlertSettings) -> dict[str, float]:
    late_s = -alerts.overdue.total_seconds()
    return {"late_s": late_s, "window_s": 2 * late_s}


def _late() -> sa.ColumnElement[datetime]:
    return database_now(sa.bindparam("late_s", type_=sa.Float))


_EXPECTED = (
    sa.select(
        operations.c.id,
        operations.c.action_uid,
        operations.c.small_app_id,
        operations.c.occurrence_at,
        operations.c.recorded_at,
        operations.c.queue,
        operations.c.task,
        operations.c.state,
        actions.c.name.label("action"),
        actions.c.plan,
        small_apps.c.name.label("small_app"),
        action_state.c.run_number,
    )
    .join(actions, actions.c.uid == operations.c.action_uid)
    .join(small_apps, small_apps.c.id == operations.c.small_app_id)
    .outerjoin(action_state, state_of(operations.c.action_uid))
    .where(IS_EXPECTED, IS_LIVE)
    .where(action_state.c.overdue_alerted_at.is_(None))
    # An instant in the future comes from a clock that was ahead: ignore it.
    .where(
        action_state.c.last_run_at.is_(None)
        | sa.not_(action_state.c.last_run_at.between(_late(), database_now()))
    )
    .order_by(operations.c.recorded_at)
    .limit(sa.bindparam("most"))
)
_OVERDUE = _EXPECTED.where(operations.c.recorded_at < _late())
_older, _other = operations.alias("older"), operations.alias("other")
# An action that is due at least that often has one in any such window.
_WERE_OVERTAKEN = sa.select(_older.c.action_uid).where(
    # With all app ids, the index on recorded_at is used.
    _older.c.small_app_id.in_(sa.select(small_apps.c.id)),
    _older.c.recorded_at < _late(),
    _older.c.recorded_at >= database_now(sa.bindparam("window_s", type_=sa.Float)),
    _older.c.state == OperationState.SKIPPED,
    _older.c.first_started_at.is_(None),
    _older.c.reason.startswith(OVERTAKEN) | _older.c.reason.startswith(MORE_WAITED),
)
_RUNS_OR_RAN = sa.exists().where(
    _other.c.action_uid == operations.c.action_uid,
    _other.c.first_started_at.is_not(None),
    in_literals(_other.c.state, {OperationState.RUNNING}) | (_other.c.finished_at > _late()),
)
_OVERTAKEN = _EXPECTED.where(operations.c.action_uid.in_(_WERE_OVERTAKEN), sa.not_(_RUNS_OR_RAN))


def _mark(connection: sa.Connection, row: sa.Row[Any]) -> bool:
    """Mark the action as overdue; False if another daemon did."""
    key = {"action_uid": row.action_uid, "subject": ""}
    connection.execute(insert_ignoring(connection, action_state).values(**key))
    marked = (
        sa.update(action_state)
        .where(state_of(row.action_uid), action_state.c.overdue_alerted_at.is_(None))
        .values(overdue_alerted_at=database_now())
    )
    return connection.execute(marked).rowcount == 1


def _reason(row: sa.Row[Any], listened: frozenset[str]) -> str:
    is_unsent, carrier = row.state == "pending", carrier_of(row.task)
    is_heard = carrier.listed(row.queue) in listened
    if not is_heard and carrier is HTTP:
        return f"no worker asks for the jobs of queue {row.queue}"
    if not is_heard and carrier.knows_readers(row.queue, is_sent=not is_unsent):
        return f"no worker listens to queue {row.queue}"
    if is_unsent and carrier is not HTTP:
        return "it could not be sent; is the broker running?"
    return f"it waits in queue {row.queue} for a free worker"


def _enqueue(
    connection: sa.Connection,
    row: sa.Row[Any],
    reason: str,
    alerts: AlertSettings,
    now: datetime,
) -> None:
    targets = targets_of(NoticeKind.OVERDUE, hooks_of(row.plan), alert_targets(alerts))
    notices.withdraw_stale(connection, row.action_uid, NoticeKind.SEEN)
    # Without quiet hours, the sweep that found it sends it.
    not_before = quiet_until(now, alerts.quiet, alerts.timezone) or now
    # An operation may be overdue again after another one of its action ran.
    origin = Origin(
        row.small_app_id, row.action_uid, row.id, f"overdue {row.run_number}", row.id, not_before
    )
    payload = {
        "kind": NoticeKind.OVERDUE,
        "small_app": row.small_app,
        "action": row.action,
        "action_uid": str(row.action_uid),
        "operation_id": str(row.id),
        "state": row.state,
        "reason": reason,
        "queue": row.queue,
        "occurrence_at": row.occurrence_at and format_instant(row.occurrence_at),
        "recorded_at": row.recorded_at and format_instant(row.recorded_at),
    }
    notices.enqueue(connection, origin, NoticeKind.OVERDUE, targets, payload)
