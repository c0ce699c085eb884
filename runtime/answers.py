"""Connections to PostgreSQL whose statements fail if the server stays silent.

The server's own limit does not help where its answer never arrives: a peer that acknowledges what
it gets, such as a proxy that hangs, keeps a connection alive for ever.
"""

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

from runtime.clock import monotonic
from runtime.postgresql import STATEMENT_TIMEOUT_S

T = TypeVar("T")

# Longer than the server lets a statement run: until then, an answer is on its way.
ANSWER_WITHIN_S = STATEMENT_TIMEOUT_S + 15


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
