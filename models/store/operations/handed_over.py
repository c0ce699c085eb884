"""What the broker took for the user's own application and nobody follows: over, as we know it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState
from models.sql import upsert
from models.store import notices
from models.store.notices import alerting
from models.store.notices.alerting import LATEST, STANDING, End
from models.store.operations.finish import PLAN
from models.store.operations.move import fenced, move
from models.tables import action_state, operations
from runtime.sections import AlertSettings

FORGIVEN = {"failures_in_row": 0, "troubles_in_row": 0}


def hand_over(
    connection: sa.Connection,
    its: Sequence[tuple[UUID, int]],
    reason: str,
    alerts: AlertSettings,
) -> None:
    """End these unstarted attempts (id, number) as handed over, and let their actions know.

    Many at once in few statements: the broker takes hundreds in a second. Who waits for one of
    them is released by the sweep.
    """
    if not its:
        return
    ended = move(
        OperationState.HANDED_OVER,
        # The id by itself finds the row: from pairs alone SQLite reads the whole table.
        operations.c.id.in_([id for id, _ in its]),
        sa.tuple_(operations.c.id, operations.c.attempt).in_(its),
        reason=reason,
        sendings=sa.case(
            (operations.c.queued_at.is_(None), operations.c.sendings + 1),
            else_=operations.c.sendings,
        ),
    ).returning(
        operations.c.id,
        operations.c.attempt,
        operations.c.action_uid,
        operations.c.subject,
        operations.c.handing_at,
        operations.c.finished_at,
    )
    rows = connection.execute(ended).all()
    _remember(connection, rows)
    _tell(connection, rows, reason, alerts)


def take_up(connection: sa.Connection, operation_id: UUID, attempt: int) -> bool:
    """Let a worker that follows after all claim what counted as handed over; False if it did not.

    It is not over, so it counts as no run until it ends. In the transaction of the claim, which may
    refuse it for the same reasons as any other.
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
    """Return under which subjects a run counts: its own before that of the action as a whole."""
    return [row.subject, ""] if row.subject else [""]


def _remember(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> None:
    """Write what the actions know: nothing failed, as far as anybody can tell."""
    known: dict[tuple[UUID, str], dict[str, Any]] = {}
    for row in rows:
        # Of a start nothing is known: that of the sending stands for it.
        values = {"last_state": OperationState.HANDED_OVER, "last_run_at": row.handing_at}
        for subject in _counted_for(row):
            key = {"action_uid": row.action_uid, "subject": subject}
            before = known.get((row.action_uid, subject), {"run_number": 0})
            count = {"run_number": before["run_number"] + 1}
            known[row.action_uid, subject] = {**key, **values, **FORGIVEN, **count}
    # In the order in which everybody takes them: a subject's own before its action's.
    in_order = sorted(known, key=lambda key: (key[0], key[1] == "", key[1]))
    values_of = [known[key] for key in in_order]
    upsert(connection, action_state, values_of, ("run_number",), LATEST)


def _tell(
    connection: sa.Connection, rows: Sequence[sa.Row[Any]], reason: str, alerts: AlertSettings
) -> None:
    """Owe what closes an open alert; without one nobody is told of what is handed over."""
    newest = {row.action_uid: row for row in rows}
    is_open = action_state.c.alerted_at.is_not(None) | (
        action_state.c.overdue_alerted_at.is_not(None)
    )
    standing: sa.Select[Any] = (
        sa.select(action_state.c.action_uid, *STANDING)
        .where(action_state.c.action_uid.in_(list(newest)), action_state.c.subject == "")
        .where(is_open)
    )
    for known in connection.execute(standing).all():
        row = newest[known.action_uid]
        plan = connection.execute(sa.select(PLAN).where(operations.c.id == row.id)).scalar_one()
        state = OperationState.HANDED_OVER
        its_end = (row.action_uid, state, reason, row.finished_at, plan)
        owed = alerting.owe(connection, End(row.id, row.attempt, *its_end), known, alerts)
        notices.send_soon(connection, owed)
