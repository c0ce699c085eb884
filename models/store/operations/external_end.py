"""End operations that were handed to an application whose workers do not follow them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState
from models.sql import upsert
from models.store import notices
from models.store.notices import alerting
from models.store.notices.alerting import LATEST, STATUS, End
from models.store.notices.findings import IS_OPEN, open_of
from models.store.operations import ends
from models.store.operations.end import PLAN, known_after
from models.store.operations.reserve import SENT_ONCE_MORE
from models.store.operations.transitions import fenced, move
from models.tables import action_state, findings, operations
from runtime.sections import AlertSettings


def hand_over(
    connection: sa.Connection,
    its: Sequence[tuple[UUID, int]],
    reason: str,
    alerts: AlertSettings,
) -> None:
    """End these unstarted attempts (id, number) as handed over, and update their actions' state.

    Few statements, for hundreds at once. The sweep releases the operations that wait for them.
    """
    if not its:
        return
    ended = move(
        OperationState.HANDED_OVER,
        # The id alone uses the index: for pairs, SQLite reads the whole table.
        operations.c.id.in_([id for id, _ in its]),
        sa.tuple_(operations.c.id, operations.c.attempt).in_(its),
        # Else a worker has claimed it meanwhile, and it waits for another operation.
        operations.c.send_started_at.is_not(None),
        reason=reason,
        sendings=sa.case(
            (operations.c.sent_at.is_(None), SENT_ONCE_MORE),
            else_=operations.c.sendings,
        ),
    ).returning(
        operations.c.id,
        operations.c.attempt,
        operations.c.action_uid,
        operations.c.subject,
        operations.c.send_started_at,
        operations.c.finished_at,
    )
    rows = connection.execute(ended).all()
    ends.raise_events(connection, [row.id for row in rows])
    _remember(connection, rows)
    _enqueue_recoveries(connection, rows, reason, alerts)


def take_up(connection: sa.Connection, operation_id: UUID, attempt: int) -> bool:
    """Make a handed-over operation claimable by a worker that follows; False if it was not.

    It no longer counts as a run until it ends. Called in the transaction of the claim.
    """
    taken = move(
        OperationState.QUEUED,
        fenced(operation_id, attempt),
        since={OperationState.HANDED_OVER},
        reason=None,
    ).returning(operations.c.action_uid, operations.c.subject)
    row = connection.execute(taken).one_or_none()
    if row is None:
        return False
    for subject in _counted_for(row):
        its_own = (action_state.c.action_uid == row.action_uid, action_state.c.subject == subject)
        counted = sa.update(action_state).where(*its_own, action_state.c.run_number > 0)
        connection.execute(counted.values(run_number=action_state.c.run_number - 1))
    return True


def _counted_for(row: sa.Row[Any]) -> list[str]:
    """Return the subjects under which a run counts: its own before the whole action's."""
    return [row.subject, ""] if row.subject else [""]


def _remember(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> None:
    """Write the actions' state."""
    known: dict[tuple[UUID, str], dict[str, Any]] = {}
    for row in rows:
        # The start is unknown: the sending counts as it.
        values = known_after(OperationState.HANDED_OVER, row.send_started_at)
        for subject in _counted_for(row):
            key = {"action_uid": row.action_uid, "subject": subject}
            before = known.get((row.action_uid, subject), {"run_number": 0})
            count = {"run_number": before["run_number"] + 1}
            known[row.action_uid, subject] = {**key, **values, **count}
    # In the order that all writers keep: a subject's row before its action's.
    in_order = sorted(known, key=lambda key: (key[0], key[1] == "", key[1]))
    values_of = [known[key] for key in in_order]
    upsert(connection, action_state, values_of, ("run_number",), LATEST)


def _enqueue_recoveries(
    connection: sa.Connection, rows: Sequence[sa.Row[Any]], reason: str, alerts: AlertSettings
) -> None:
    """End the findings that are open, with their notices."""
    newest = {row.action_uid: row for row in rows}
    open_ones = sa.select(findings.c.action_uid).where(IS_OPEN)
    status: sa.Select[Any] = (
        sa.select(action_state.c.action_uid, *STATUS, open_of(action_state.c.action_uid))
        .where(action_state.c.action_uid.in_(list(newest)), action_state.c.subject == "")
        .where(action_state.c.action_uid.in_(open_ones))
    )
    for known in connection.execute(status).all():
        row = newest[known.action_uid]
        plan = connection.execute(sa.select(PLAN).where(operations.c.id == row.id)).scalar_one()
        state = OperationState.HANDED_OVER
        its_end = (row.action_uid, state, reason, row.finished_at, plan)
        owed = alerting.enqueue(connection, End(row.id, row.attempt, *its_end), known, alerts)
        notices.send_soon(connection, owed)
