"""One connection to an agent: a line of JSON for each request and each answer.

A request without a number gets no answer.
"""

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa

from minutebook.error_text import text_of
from minutebook.lease import CANCELLED
from models.errors import LeaseLost
from models.store.operations import external_worker
from models.store.operations.start_checks import NotStarted
from models.store.operations.take import recorded_of
from models.store.workers import Heartbeat
from runtime.database import DATABASE_AWAY
from runtime.db_retry import persist
from runtime.logs.events import EventLog
from scheduler.events.dependants import send_ended
from tasks.agent import followed
from tasks.agent.claims import UNHEARD, Away, Call, call_of, key_of
from tasks.agent.desk import Errand
from tasks.agent.ends import note_went_back
from tasks.agent.followed import Held
from tasks.agent.workers import described_worker

if TYPE_CHECKING:
    from tasks.agent import Agent

logger = EventLog("minutebook.agent")

# The longest request, in bytes: a task's progress or end.
LONGEST_LINE = 16 * 2**20
# How long a heartbeat waits for the database.
BEAT_S = 1.0
# What an end may hold; the rest of its line says whose it is.
REPORTED = frozenset(
    {
        *("outcome", "error", "traceback", "returned", "message", "progress"),
        *("by", "is_followed", "at", "delay_s"),
    }
)


class Session:
    """One connection: one operation after the other, each from its claim to its end."""

    def __init__(self, agent: "Agent", source: Any, sink: Any) -> None:
        self.agent = agent
        self.source = source
        self.sink = sink
        self.held: Held | None = None
        # The call that last asked for an attempt.
        self.call: Call | None = None
        # What is not known of it, if the database may have committed it without an answer.
        self.doubt: Away | None = None
        # Set when a sidecar's worker introduces itself, on a connection for that purpose.
        self.worker: Heartbeat | None = None

    @property
    def is_busy(self) -> bool:
        """Whether it serves an operation or a worker, rather than being kept for the next task."""
        return (self.held or self.call or self.worker) is not None

    def serve(self) -> None:
        """Answer until the connection closes; then put back or end an operation still held."""
        try:
            while line := self.source.readline(LONGEST_LINE):
                asked = json.loads(line)
                answer = self._answer(asked)
                if "n" in asked:
                    # The number shows which request this answers.
                    line = json.dumps({**answer, "n": asked["n"]}, default=str).encode()
                    self.sink.write(line + b"\n")
        except (OSError, ValueError) as error:
            logger.warning("agent_connection_broke", "a connection broke: {error}", error)
        except Exception:
            logger.exception(
                "agent_connection_failed", "a connection is closed after an unexpected error"
            )
        if self.held is not None:
            self.agent.ends.leave_behind(self.held)
        elif self.call is not None and self.doubt is not None:
            self._give_back_in_doubt(self.call, self.doubt)
        if self.worker is not None:
            self.agent.workers.left(self.worker)

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["verb"]:
            case "take" | "resume" if self.held is not None:
                return {"state": "refused", "reason": f"this connection holds {self.held.key.id}"}
            case "worker" | "take" | "resume" | "discarded" as verb:
                answers = {
                    "worker": self._heard,
                    "take": self._take,
                    "resume": self._resume,
                    "discarded": self._discarded,
                }
                return answers[verb](asked)
            case "started" if self.held is not None:
                self.held.has_started = True
                self.held.killed_at = asked.get("killed_at")
                return {"state": "started"}
            case "beat" if self.held is not None:
                return self._beat(self.held, asked)
            case "end" if self.held is not None or "delivery" in asked:
                return self._end(asked)
        return {"state": "lost", "reason": f"nothing is held to {asked['verb']}"}

    def _heard(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            self.worker = described_worker(asked)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"this release of the agent does not understand it ({text_of(error)})"
            return {"state": "refused", "reason": reason}
        if self.agent.workers.is_news(self.worker):
            # On record when it is ready, unless the database does not answer.
            errand = Errand(partial(self.agent.workers.write, workers=[self.worker]))
            self.agent.desk.submit(errand)
            errand.is_settled(BEAT_S)
        return {"state": "known"}

    def _take(self, asked: dict[str, Any]) -> dict[str, Any]:
        call = self.call = call_of(asked)
        if call.again and self.agent.is_asked_elsewhere(self):
            # The connection that broke may hold it still, and is about to give it back.
            return {"state": "early", "reason": "another connection asks for it"}
        found = self.agent.claims.claim(call)
        if isinstance(found, Away):
            self.doubt = found if found.is_in_doubt or found.open is not None else None
            return {"state": "away", "reason": found.reason, "put_back": True}
        if isinstance(found, NotStarted):
            logger.info(
                "operation_not_started",
                "operation {operation} attempt {attempt}: not started, {reason}",
                call.wanted.id,
                call.wanted.attempt,
                found.why,
            )
            send_ended(self.agent.engine, found.ended)
            is_early = found in (followed.EARLY, UNHEARD)
            return {"state": "early" if is_early else "refused", "reason": found.why}
        self.held, claimed = found, found.claim
        logger.info(
            "operation_started",
            "{triggerer}: operation {operation} started (attempt {attempt})",
            claimed.triggerer,
            call.wanted.id,
            call.wanted.attempt,
        )
        self.agent.ends.send_started(claimed.owed)
        limits = self.agent.settings.worker.limits(claimed.plan.time_limit)
        return {"state": "taken", **followed.described(found), "limits": vars(limits)}

    def _resume(self, asked: dict[str, Any]) -> dict[str, Any]:
        key = key_of(asked)
        errand = Errand(lambda connection: followed.resume(connection, key))
        trouble = self._trouble_of(errand)
        if trouble is not None:
            return trouble
        self.held = errand.result
        return {"state": "resumed"}

    def _trouble_of(self, errand: Errand[Any]) -> dict[str, Any] | None:
        """Return why an errand of a task that runs has no result; None if it has one."""
        self.agent.desk.submit(errand)
        if not errand.is_settled(BEAT_S):
            # One that comes late renews the lease all the same.
            return {"state": "away", "reason": f"no answer of the database within {BEAT_S:g} s"}
        if isinstance(errand.error, LeaseLost):
            note_went_back(self.agent.desk, errand.error)
            return {"state": "lost", "reason": str(errand.error)}
        if isinstance(errand.error, DATABASE_AWAY):
            return {"state": "away", "reason": str(errand.error)}
        if errand.error is not None:
            raise errand.error
        return None

    def _beat(self, held: Held, asked: dict[str, Any]) -> dict[str, Any]:
        progress = asked.get("progress") or {}
        errand = Errand(lambda connection: external_worker.beat(connection, held.key, progress))
        trouble = self._trouble_of(errand)
        if trouble is not None and trouble["state"] == "lost":
            self.held = None
            return {"state": "lost"}
        if trouble is not None:
            return trouble
        return {"state": "running", "stop": CANCELLED if errand.result else None}

    def _end(self, asked: dict[str, Any]) -> dict[str, Any]:
        held, ends = self.held, self.agent.ends
        report = {key: one for key, one in asked.items() if key in REPORTED}
        if held is not None:
            answer = ends.report(held, report)
        else:
            answer = ends.report_unknown(key_of(asked), report)
        self.held = self.call = None
        return answer

    def _discarded(self, asked: dict[str, Any]) -> dict[str, Any]:
        """End an operation whose message Celery discarded: its task was revoked or is unknown."""
        its, alerts = (UUID(asked["id"]), int(asked["attempt"])), self.agent.settings.alert
        is_unknown = asked["what"] == followed.UNKNOWN_TASK
        try:
            with self.agent.engine.begin() as connection:
                recorded = recorded_of(connection, *its)
                kept_out = self.agent.claims.kept_out(recorded, its[1], is_unknown=is_unknown)
                if kept_out is not None:
                    state = "later" if kept_out is UNHEARD else "refused"
                    return {"state": state, "reason": kept_out.why}
                ended = followed.end_discarded(connection, its, asked, alerts)
        except (followed.JustBeingSent, sa.exc.IntegrityError, *DATABASE_AWAY) as error:
            return {"state": "later", "reason": str(error)}
        if ended is not None:
            logger.info(
                "message_discarded",
                "operation {operation}: its message was discarded: {reason}",
                its[0],
                asked["reason"],
            )
        send_ended(self.agent.engine, ended)
        return {"state": "noted"}

    def _give_back_in_doubt(self, call: Call, doubt: Away) -> None:
        """Give back an attempt whose claim may have been committed; its worker put it back."""
        engine, alerts = self.agent.engine, self.agent.settings.alert
        if doubt.open is not None:
            doubt.open.is_settled()
        key = call.wanted.key
        try:
            ended = persist(engine, lambda c: followed.give_back_in_doubt(c, key, alerts))
            send_ended(engine, ended)
        except sa.exc.SQLAlchemyError as error:
            logger.warning(
                "operation_left_to_sweep",
                "operation {operation} is left to the sweep: {error}",
                call.wanted.id,
                error,
            )
