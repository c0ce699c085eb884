"""Connections to PostgreSQL whose statements fail if the server stays silent, and their cursors.

The server's own limit does not help where its answer never arrives: a peer that acknowledges what
it gets, such as a proxy that hangs, keeps a connection alive for ever.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

from runtime.clock import monotonic
from runtime.postgresql import STATEMENT_TIMEOUT_S

T = TypeVar("T")

# Longer than the server lets a statement run: until then, an answer is on its way.
ANSWER_WITHIN_S = STATEMENT_TIMEOUT_S + 15


class LaterColumns(Sequence[psycopg.Column]):
    """The columns of a cursor's result, made once they are read.

    SQLAlchemy asks for them after each statement, and reads them after the first of its kind.
    """

    def __init__(self, made: Callable[[], Sequence[psycopg.Column]]) -> None:
        self._made = made

    @cached_property
    def _columns(self) -> Sequence[psycopg.Column]:
        return self._made()

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        return self._columns[index]


class Cursor(psycopg.Cursor[Any]):
    """A cursor whose description costs nothing as long as it is not read."""

    @property
    def description(self) -> Any:
        """Return the columns of the result, None if it has no rows."""
        result = self.pgresult
        if result is None or result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            return super().description
        return LaterColumns(lambda: super(Cursor, self).description or ())


class AnsweringConnection(psycopg.Connection[Any]):
    """A connection that is closed once a statement gets no sign of an answer for so long."""

    def wait(self, gen: PQGen[T], *given: Any, **named: Any) -> T:
        return super().wait(self._in_time(gen), *given, **named)

    def _in_time(self, gen: PQGen[T]) -> PQGen[T]:
        give_up_at = monotonic() + ANSWER_WITHIN_S
        try:
            waits_for = next(gen)
            while True:
                ready = yield waits_for
                if ready:
                    give_up_at = monotonic() + ANSWER_WITHIN_S
                elif monotonic() > give_up_at:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(
                        f"the server did not answer within {ANSWER_WITHIN_S:.0f} s"
                    )
                waits_for = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
