"""Alert on operations that were not started in time: one alert per action."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.action.health import REMEDIES
from models.action.plan import hooks_of
from models.notices import FindingKind
from models.operation import OperationState
from models.sql import database_now, in_literals, unindexed
from models.store import notices
from models.store.conditions import IS_EXPECTED, IS_LIVE, state_of
from models.store.notices import findings
from models.store.notices.alerting import of_findings, told_of
from models.store.notices.findings import IS_OPEN, Found
from models.store.operations import gave_way
from models.store.operations.causes import FACTS, Causes
from models.store.pauses import was_paused
from models.tables import action_state, actions, operations
from models.tables import findings as stored
from models.worker_kinds import HTTP, worker_kind_of
from runtime.sections import AlertSettings


def alert(
    connection: sa.Connection, alerts: AlertSettings, limit: int, *, overtook: bool = False
) -> list[tuple[str, str]]:
    """Begin a finding for each newly overdue action, with its notices; return names and reasons.

    An action that ran within the same span is not overdue, even if one of its operations waits.
    `overtook`: newer operations replaced unstarted ones, so that none grows old.
    """
    late_s = -alerts.overdue.total_seconds()
    asked = {"late_s": late_s, "window_s": 2 * late_s, "most": limit}
    # What waited for the end of a pause is sent soon after it.
    sent = sa.not_(was_paused(operations.c, alerts.overdue))
    found = list(connection.execute(_OVERDUE.where(sent), asked))
    if overtook:
        found += connection.execute(_OVERTAKEN.where(sent), asked)
    if not found:
        return []
    causes = Causes(connection)
    # In one order, so that two daemons never deadlock.
    first = {row.action_uid: row for row in reversed(found)}
    alerted = []
    for uid, row in sorted(first.items()):
        reason = causes.why(row._mapping) or _waits(row)
        text = f"{row.action}: overdue: {reason}"
        its = Found(FindingKind.OVERDUE, str(uid), text, REMEDIES[FindingKind.OVERDUE], uid)
        for begun in findings.begin(connection, its):
            to = of_findings(hooks_of(row.plan), alerts)
            told = told_of(connection, row.id) | {"reason": reason}
            owed = findings.tell(connection, begun, to, told, alerts)
            # The sweep that found it sends it.
            notices.send_soon(connection, owed)
            alerted.append((row.action, reason))
    return alerted


def _late() -> sa.ColumnElement[datetime]:
    return database_now(sa.bindparam("late_s", type_=sa.Float))


_IS_KNOWN = sa.exists().where(
    stored.c.action_uid == operations.c.action_uid,
    stored.c.kind == FindingKind.OVERDUE,
    IS_OPEN,
)
_EXPECTED = (
    sa.select(
        operations.c.id,
        *FACTS,
        actions.c.name.label("action"),
        actions.c.plan,
    )
    .join(actions, actions.c.uid == operations.c.action_uid)
    .outerjoin(action_state, state_of(operations.c.action_uid))
    .where(IS_EXPECTED, IS_LIVE, sa.not_(_IS_KNOWN))
    # A broken row, of no small app, must not keep the others' alerts.
    .where(unindexed(operations.c.small_app_id == actions.c.small_app_id))
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
    _older.c.recorded_at < _late(),
    _older.c.recorded_at >= database_now(sa.bindparam("window_s", type_=sa.Float)),
    _older.c.state == OperationState.SKIPPED,
    gave_way(_older.c),
)
_RUNS_OR_RAN = sa.exists().where(
    _other.c.action_uid == operations.c.action_uid,
    _other.c.first_started_at.is_not(None),
    in_literals(_other.c.state, {OperationState.RUNNING}) | (_other.c.finished_at > _late()),
)
_OVERTAKEN = _EXPECTED.where(operations.c.action_uid.in_(_WERE_OVERTAKEN), sa.not_(_RUNS_OR_RAN))


def _waits(row: sa.Row[Any]) -> str:
    if row.state == OperationState.PENDING and worker_kind_of(row.task) is not HTTP:
        return "it could not be sent; is the broker running?"
    return f"it waits in queue {row.queue} for a free worker"
