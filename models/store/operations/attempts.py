"""The attempts of an operation: its row is the last one; those before are kept when it is put back.

A row for each last attempt would repeat its operation: a sixth of what an operation takes, and two
statements of a worker.
"""

from operator import itemgetter
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import AttemptKey
from models.sql import database_now, upsert_from
from models.store.operations.transitions import fenced
from models.tables import attempts, operations

_HAS_STARTED = operations.c.worker.is_not(None) & operations.c.started_at.is_not(None)
_BEGUN = {
    "operation_id": operations.c.id,
    "attempt": operations.c.attempt,
    "worker": operations.c.worker,
    "started_at": operations.c.started_at,
}
_LAST = {
    **_BEGUN,
    "finished_at": operations.c.finished_at,
    "state": operations.c.state,
    "error": sa.func.coalesce(operations.c.error, operations.c.reason),
}
_KEPT_ROWS = sa.select(attempts).where(attempts.c.operation_id == sa.bindparam("its_id"))
_LAST_ROW = sa.select(*(column.label(name) for name, column in _LAST.items())).where(
    operations.c.id == sa.bindparam("its_id"), _HAS_STARTED
)


def attempts_of(connection: sa.Connection, operation_id: UUID) -> list[dict[str, Any]]:
    """Return an operation's attempts, oldest first."""
    found = [
        dict(row._mapping)
        for query in (_KEPT_ROWS, _LAST_ROW)
        for row in connection.execute(query, {"its_id": operation_id})
    ]
    return sorted(found, key=itemgetter("attempt"))


def keep_put_back(
    connection: sa.Connection, key: AttemptKey, state: str, error: str | None
) -> None:
    """Keep a running attempt that ends now, before its operation is put back."""
    ended = {
        "finished_at": database_now(),
        "state": sa.literal(state, attempts.c.state.type),
        "error": sa.literal(error, attempts.c.error.type),
    }
    _keep(connection, key.id, key.attempt, {**_BEGUN, **ended})


def keep_last(connection: sa.Connection, operation_id: UUID, attempt: int) -> None:
    """Keep the last attempt of an ended operation, if it had one, before it runs again."""
    _keep(connection, operation_id, attempt, _LAST)


def _keep(
    connection: sa.Connection,
    operation_id: UUID,
    attempt: int,
    columns: dict[str, sa.ColumnElement[Any]],
) -> None:
    named = (column.label(name) for name, column in columns.items())
    its = sa.select(*named).where(fenced(operation_id, attempt), _HAS_STARTED)
    upsert_from(connection, attempts, tuple(columns), its)
