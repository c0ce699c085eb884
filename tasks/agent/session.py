"""One connection to an agent: a line of JSON for each request and each answer."""

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_ended
from minutebook.error_text import text_of
from minutebook.lease import CANCELLED
from models.errors import LeaseLost
from models.store.operations import one_step
from models.store.operations.admission import KeptBack
from models.store.operations.finish import Ended
from models.store.presence import Seen
from runtime.database import DATABASE_AWAY
from runtime.db_retry import persist
from runtime.logs.events import EventLog
from tasks.agent import followed
from tasks.agent.claims import UNHEARD, Away, Call, call_of
from tasks.agent.followed import Held
from tasks.agent.workers import described_worker

if TYPE_CHECKING:
    from tasks.agent import Agent

logger = EventLog("minutebook.agent")

# The longest request, in bytes: a task's progress or end.
LONGEST_LINE = 16 * 2**20


class Session:
    """One connection: at most one operation, from its claim to its end."""

    def __init__(self, agent: "Agent", source: Any, sink: Any) -> None:
        self.agent = agent
        self.source = source
        self.sink = sink
        self.held: Held | None = None
        # The call that last asked for an attempt.
        self.call: Call | None = None
        # Whether the database may have committed its claim without an answer.
        self.is_in_doubt = False
        # Set when a sidecar's worker introduces itself, on a connection for that purpose.
        self.worker: Seen | None = None

    def serve(self) -> None:
        """Answer until the connection closes; then put back or end an operation still held."""
        try:
            while line := self.source.readline(LONGEST_LINE):
                asked = json.loads(line)
                # The number shows which request this answers.
                answer = {**self._answer(asked), "n": asked.get("n")}
                self.sink.write(json.dumps(answer, default=str).encode() + b"\n")
        except (OSError, ValueError) as error:
            logger.warning("agent_connection_broke", "a connection broke: {error}", error)
        except Exception:
            logger.exception(
                "agent_connection_failed", "a connection is closed after an unexpected error"
            )
        if self.held is not None:
            self._give_back(self.held)
        elif self.call is not None and self.is_in_doubt:
            self._give_back_in_doubt(self.call)
        if self.worker is not None:
            self.agent.workers.left(self.worker)

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["verb"]:
            case "take" | "resume" if self.held is not None:
                return {"state": "refused", "reason": f"this connection holds {self.held.its[0]}"}
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
            case "end" if self.held is not None:
                return self._end(self.held, asked)
        return {"state": "lost", "reason": f"nothing is held to {asked['verb']}"}

    def _heard(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            self.worker = described_worker(asked)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"this release of the agent does not understand it ({text_of(error)})"
            return {"state": "refused", "reason": reason}
        self.agent.workers.heard(self.worker)
        return {"state": "known"}

    def _take(self, asked: dict[str, Any]) -> dict[str, Any]:
        call = self.call = call_of(asked)
        if call.again and self.agent.is_asked_elsewhere(self):
            # The connection that broke may hold it still, and is about to give it back.
            return {"state": "early", "reason": "another connection asks for it"}
        found = self.agent.claims.claim(call)
        if isinstance(found, Away):
            self.is_in_doubt = found.is_in_doubt
            return {"state": "away", "reason": found.reason, "put_back": True}
        if isinstance(found, KeptBack):
            logger.info(
                "operation_not_started",
                "operation {operation} attempt {attempt}: not started, {reason}",
                *call.its,
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
            *call.its,
        )
        limits = self.agent.settings.worker.limits(claimed.plan.time_limit)
        return {"state": "taken", **followed.described(claimed), "limits": vars(limits)}

    def _resume(self, asked: dict[str, Any]) -> dict[str, Any]:
        its, delivery = (UUID(asked["id"]), int(asked["attempt"])), str(asked.get("delivery", ""))
        try:
            self.held = persist(self.agent.engine, lambda c: followed.resume(c, its, delivery))
        except LeaseLost as error:
            return {"state": "lost", "reason": str(error)}
        return {"state": "resumed"}

    def _beat(self, held: Held, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            with self.agent.engine.begin() as connection:
                progress = asked.get("progress") or {}
                is_cancelled = one_step.beat(connection, held.its, progress)
        except LeaseLost:
            self.held = None
            return {"state": "lost"}
        except DATABASE_AWAY as error:
            return {"state": "away", "reason": str(error)}
        return {"state": "running", "stop": CANCELLED if is_cancelled else None}

    def _end(self, held: Held, asked: dict[str, Any]) -> dict[str, Any]:
        alerts = self.agent.settings.alert
        try:
            ended = persist(self.agent.engine, lambda c: followed.write_end(c, held, asked, alerts))
        except LeaseLost as error:
            self.held = None
            logger.warning("lease_lost", "{error}; nothing more is written", error)
            return {"state": "lost"}
        self._report_end(held, ended)
        return {"state": ended.state}

    def _discarded(self, asked: dict[str, Any]) -> dict[str, Any]:
        """End an operation whose message Celery discarded: its task was revoked or is unknown."""
        its, alerts = (UUID(asked["id"]), int(asked["attempt"])), self.agent.settings.alert
        is_unknown = asked["what"] == followed.UNKNOWN_TASK
        try:
            with self.agent.engine.begin() as connection:
                kept_out = self.agent.claims.kept_out(connection, its, is_unknown=is_unknown)
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

    def _give_back(self, held: Held) -> None:
        """End an attempt whose process is gone, without waiting for its lease to expire."""
        alerts = self.agent.settings.alert
        try:
            ended = persist(self.agent.engine, lambda c: followed.end_left_behind(c, held, alerts))
            self._report_end(held, ended)
        except (LeaseLost, sa.exc.SQLAlchemyError) as error:
            logger.warning(
                "operation_left_to_sweep",
                "operation {operation} is left to the sweep: {error}",
                held.its[0],
                error,
            )

    def _give_back_in_doubt(self, call: Call) -> None:
        """Give back an attempt whose claim may have been committed; its worker put it back."""
        engine, alerts = self.agent.engine, self.agent.settings.alert
        doubtful = (call.its, call.delivery)
        try:
            ended = persist(engine, lambda c: followed.give_back_in_doubt(c, *doubtful, alerts))
            send_ended(engine, ended)
        except sa.exc.SQLAlchemyError as error:
            logger.warning(
                "operation_left_to_sweep",
                "operation {operation} is left to the sweep: {error}",
                call.its[0],
                error,
            )

    def _report_end(self, held: Held, ended: Ended) -> None:
        self.held = None
        logger.info(
            "attempt_ended",
            "operation {operation} attempt {attempt} ended: {state}",
            *held.its,
            ended.state,
        )
        send_ended(self.agent.engine, ended)
