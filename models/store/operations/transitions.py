"""The only writer of `operations.state`: every move is one of `LEGAL_MOVES`."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import IllegalMove
from models.operation import ENDED, LEGAL_MOVES, UNSTARTED, OperationState
from models.sql import database_now, is_still
from models.tables import operations

_S = OperationState
# How the reason of an operation begins whose claim the database lost: it is kept for good.
WENT_BACK = "the database went back"
KEPT_REASON = sa.case((operations.c.reason.startswith(WENT_BACK), operations.c.reason))
RUNNING = frozenset({_S.RUNNING})
PENDING = frozenset({_S.PENDING})

# What holds only while an attempt runs; a lost one may have left it.
_OF_RUNNING: dict[str, Any] = {
    "is_blocking": None,
    **dict.fromkeys(("eta_earliest_at", "eta_at", "eta_latest_at"), sa.null()),
}
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
        "handing_at": None,
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
        "waiting_for": sa.null(),
        "reason": KEPT_REASON,
        "error": sa.null(),
    },
    **dict.fromkeys(ENDED, _ENDED),
    _S.HANDED_OVER: {
        **_ENDED,
        "sent_at": sa.func.coalesce(operations.c.sent_at, database_now()),
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
    stands = is_still(operations.c.state, since)
    return sa.update(operations).where(*where, stands).values(becomes(to, since, **values))


def fenced(id: UUID, attempt: int) -> sa.ColumnElement[bool]:
    """Return the condition that an operation is in this attempt."""
    return sa.and_(operations.c.id == id, operations.c.attempt == attempt)
