"""The only writer of `operations.state`: every move is one of `LEGAL_MOVES`. Attempts are kept."""

from collections.abc import Collection
from operator import itemgetter
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import IllegalMove
from models.operation import ENDED, LEGAL_MOVES, UNSTARTED, AttemptKey, OperationState
from models.sql import database_now, in_unindexed, upsert_from
from models.tables import attempts, operations

_S = OperationState
# How the reason of an operation begins whose claim the database lost: it is kept for good.
WENT_BACK = "the database went back"
KEPT_REASON = sa.case((operations.c.reason.startswith(WENT_BACK), operations.c.reason))
RUNNING = frozenset({_S.RUNNING})
PENDING = frozenset({_S.PENDING})

# What holds only while an attempt runs; a lost one may have left it.
_OF_RUNNING: dict[str, Any] = {
    "is_blocking": None,
    "eta_at": sa.null(),
}
# A number that a hand wrote must not keep those sent with it unmarked.
SENT_ONCE_MORE = sa.case(
    (operations.c.sendings < 1_000_000, operations.c.sendings + 1), else_=operations.c.sendings
)
_ENDED: dict[str, Any] = {
    "finished_at": database_now(),
    "waiting_for": sa.null(),
    **_OF_RUNNING,
}
_WRITES: dict[OperationState, dict[str, Any]] = {
    # A new attempt has no message and no worker yet.
    _S.PENDING: {
        "attempt": operations.c.attempt + 1,
        "sendings": 0,
        "send_started_at": None,
        "worker": None,
        "secret": None,
        "heartbeat_at": None,
        **_OF_RUNNING,
        "waiting_for": None,
    },
    _S.QUEUED: {
        "sent_at": database_now(),
        "finished_at": None,
    },
    _S.RUNNING: {
        "started_at": database_now(),
        "first_started_at": sa.func.coalesce(operations.c.first_started_at, database_now()),
        "heartbeat_at": database_now(),
        **_OF_RUNNING,
        "run_type": sa.null(),
        "rewrites": sa.null(),
        "waiting_for": sa.null(),
        "reason": KEPT_REASON,
        "error": sa.null(),
    },
    **dict.fromkeys(ENDED, _ENDED),
    _S.HANDED_OVER: {
        **_ENDED,
        "sent_at": sa.func.coalesce(operations.c.sent_at, database_now()),
        "sendings": sa.case(
            (operations.c.sent_at.is_(None), SENT_ONCE_MORE), else_=operations.c.sendings
        ),
    },
}


def becomes(to: OperationState, since: Collection[OperationState], **values: Any) -> dict[str, Any]:
    """Return the columns that a move from a state in `since` to `to` writes, with `values`.

    Raises IllegalMove for a move that is not in `LEGAL_MOVES`.
    """
    illegal = sorted(state for state in since if to not in LEGAL_MOVES[state])
    if illegal or not since:
        raise IllegalMove(f"an operation does not move from {', '.join(illegal) or '-'} to {to}")
    return {"state": to, **_WRITES[to], **values}


def move(
    to: OperationState,
    *where: sa.ColumnElement[bool],
    since: Collection[OperationState] = UNSTARTED,
    **values: Any,
) -> sa.Update:
    """Return the statement that moves operations from a state in `since` to `to`.

    It changes no row that another process has moved. The rows are found by `where` alone, not by
    an index of their state. Raises IllegalMove.
    """
    stands = in_unindexed(operations.c.state, since)
    return sa.update(operations).where(*where, stands).values(becomes(to, since, **values))


def fenced(id: UUID, attempt: int) -> sa.ColumnElement[bool]:
    """Return the condition that an operation is in this attempt."""
    return sa.and_(operations.c.id == id, operations.c.attempt == attempt)


# An operation's row is its last attempt; those before are kept when it is put back. A row for each
# last attempt would repeat its operation: a sixth of it, and two statements of a worker.
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
_SECRET = {"secret": operations.c.secret}
_KEPT_ROWS = sa.select(*(attempts.c[name] for name in _LAST)).where(
    attempts.c.operation_id == sa.bindparam("its_id")
)
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


def archive_attempt(
    connection: sa.Connection, key: AttemptKey, state: str, error: str | None
) -> None:
    """Keep a running attempt that ends now, before its operation is put back."""
    ended = {
        "finished_at": database_now(),
        "state": sa.literal(state, attempts.c.state.type),
        "error": sa.literal(error, attempts.c.error.type),
    }
    _keep(connection, fenced(key.id, key.attempt), {**_BEGUN, **ended, **_SECRET})


def archive_last(connection: sa.Connection, those: sa.ColumnElement[bool]) -> None:
    """Keep the last attempts of ended operations that had one, before they run again."""
    _keep(connection, those, {**_LAST, **_SECRET})


def _keep(
    connection: sa.Connection,
    those: sa.ColumnElement[bool],
    columns: dict[str, sa.ColumnElement[Any]],
) -> None:
    named = (column.label(name) for name, column in columns.items())
    its = sa.select(*named).where(those, _HAS_STARTED)
    upsert_from(connection, attempts, tuple(columns), its)
