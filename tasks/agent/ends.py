"""The ends of attempts: written at once, or kept on the disk and written when the database is back.

Each is written under the fence of its attempt, so that one that was given away meanwhile does not
win, and one that is written twice is written once.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_started
from models.errors import DatabaseWentBack, LeaseLost
from models.operation import AttemptKey
from models.store.notices import Owed
from models.store.operations import heartbeat
from models.store.operations.end import EndResult
from runtime.clock import monotonic
from runtime.logs.events import EventLog
from runtime.sections import AlertSettings
from scheduler.events.dependants import send_ended
from tasks.agent import followed
from tasks.agent.desk import PROMPT_S, Desk, Errand
from tasks.agent.details import Details
from tasks.agent.followed import Held
from tasks.agent.spool import Spool

logger = EventLog("minutebook.agent")

KEPT = Details()
Answer = dict[str, Any]
# How often to look for what agents left that are gone.
LOOK_EVERY_S = 60.0
# How long a task waits whose end neither the database nor the disk takes; then the sweep decides.
KEEP_S = 600.0
# How many ends at once may release what waited for them: a broker may be slow.
SENDERS = 4


def note_went_back(desk: Desk, error: LeaseLost) -> None:
    """Note it if the database lost a claim that an agent's worker had made."""
    if isinstance(error, DatabaseWentBack):
        desk.submit(Errand(lambda connection: heartbeat.note_went_back(connection, error)))


class End(Errand[EndResult]):
    """An end to write; `then` reports what became of it."""

    def __init__(
        self,
        attempt: AttemptKey,
        act: Callable[[sa.Connection], EndResult],
        written: Callable[["End"], None],
    ) -> None:
        super().__init__(act, lasts=True)
        self.attempt = attempt
        self._written = written
        # Whether a session still waits for it, and acts on it then.
        self.is_awaited = True

    @property
    def key(self) -> str:
        """Its name among the kept ends: an attempt ends once."""
        return f"{self.attempt.id}-{self.attempt.attempt}"

    def leave(self) -> bool:
        """Wait for it no longer; return whether it was not written yet."""
        with self._lock:
            if self.result is None and self.error is None:
                self.is_awaited = False
            return not self.is_awaited

    def then(self) -> None:
        """Report it."""
        self._written(self)


class Ends:
    """Writes the ends of an agent's attempts."""

    def __init__(
        self, desk: Desk, spool: Spool, alerts: AlertSettings, details: Details = KEPT
    ) -> None:
        self._desk, self._spool, self._alerts = desk, spool, alerts
        self._details = details
        self._open: dict[str, End] = {}
        self._sender = ThreadPoolExecutor(SENDERS, "ends")
        self._look_at = 0.0

    def report(self, held: Held, report: Mapping[str, Any]) -> Answer:
        """Write or keep the end that a task reports; return its state, `kept` or `lost`."""
        report = self._details.in_lines(report)
        end = self._submit(held.key, lambda c: followed.write_end(c, held, report, self._alerts))
        return self._answer(end, report)

    def report_unknown(self, key: AttemptKey, report: Mapping[str, Any]) -> Answer:
        """Write or keep the end of an attempt that an earlier agent claimed."""
        report = self._details.in_lines(report)
        return self._answer(self._submit_kept(key, report), report)

    def leave_behind(self, held: Held) -> None:
        """End an attempt whose process is gone, without waiting for its lease to expire."""
        self._submit(
            held.key,
            lambda c: followed.end_left_behind(c, held, self._alerts),
            is_awaited=False,
        )

    def look(self) -> None:
        """Take over the ends that agents kept and left, now and then."""
        if monotonic() < self._look_at:
            return
        self._look_at = monotonic() + LOOK_EVERY_S
        for key, kept in self._spool.kept(but=self._open):
            try:
                its = (UUID(kept["id"]), int(kept["attempt"]), str(kept["delivery"]))
                self._submit_kept(AttemptKey(*its), dict(kept["report"]), is_awaited=False)
            except (KeyError, TypeError, ValueError) as error:
                path = self._spool.path_of(key)
                logger.warning(
                    "end_unreadable", "a kept end, {path}, is unreadable: {error}", path, error
                )
                self._spool.forget(key)

    def close(self) -> None:
        """Send what the ends so far released."""
        self._sender.shutdown()

    def _submit_kept(
        self, key: AttemptKey, report: Mapping[str, Any], *, is_awaited: bool = True
    ) -> End:
        def act(connection: sa.Connection) -> EndResult:
            held = followed.resume(connection, key)
            return followed.write_end(connection, held, report, self._alerts)

        return self._submit(key, act, is_awaited=is_awaited)

    def _submit(
        self,
        attempt: AttemptKey,
        act: Callable[[sa.Connection], EndResult],
        *,
        is_awaited: bool = True,
    ) -> End:
        end = End(attempt, act, self._written)
        end.is_awaited = is_awaited
        self._open[end.key] = end
        self._desk.submit(end)
        return end

    def _answer(self, end: End, report: Mapping[str, Any]) -> Answer:
        if not end.is_settled(0.0 if self._desk.is_away() else PROMPT_S):
            id, attempt, delivery = end.attempt
            its = {"id": str(id), "attempt": attempt, "delivery": delivery}
            kept = {**its, "report": dict(report)}
            if self._spool.keep(end.key, kept):
                if end.leave():
                    return {"state": "kept"}
                # Written in the same moment.
                self._spool.forget(end.key)
            end.is_settled(KEEP_S)
        if end.error is not None and not isinstance(end.error, LeaseLost):
            raise end.error
        if end.result is None:
            return {"state": "lost"}
        self._send(end.result)
        return {"state": end.result.state}

    def _send(self, ended: EndResult) -> None:
        """Send what an end released, and let the task wait for that no longer than for its end."""
        if ended.released or ended.owed or ended.raised:
            wait([self._sender.submit(send_ended, self._desk.engine, ended)], PROMPT_S)

    def send_started(self, owed: Sequence[Owed]) -> None:
        """Send the notices of a start; its task does not wait for that."""
        if owed:
            self._sender.submit(send_started, self._desk.engine, owed)

    def _written(self, end: End) -> None:
        if self._open.get(end.key) is end:
            del self._open[end.key]
        if isinstance(end.error, LeaseLost):
            logger.warning("lease_lost", "{error}; nothing more is written", end.error)
            note_went_back(self._desk, end.error)
        elif end.error is not None:
            logger.warning(
                "operation_left_to_sweep",
                "operation {operation} is left to the sweep: {error}",
                end.attempt.id,
                end.error,
            )
        elif end.result is not None:
            logger.info(
                "attempt_ended",
                "operation {operation} attempt {attempt} ended: {state}",
                end.attempt.id,
                end.attempt.attempt,
                end.result.state,
            )
        if not end.is_awaited:
            self._sender.submit(self._clear_up, end)

    def _clear_up(self, end: End) -> None:
        self._spool.forget(end.key)
        send_ended(self._desk.engine, end.result)
