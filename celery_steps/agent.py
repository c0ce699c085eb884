"""The agent beside workers of the user's application: serves operations over a unix socket.

Each connection serves one operation. If it closes before the operation ends, the process that held
it was killed: the kernel closes its sockets.
"""

import json
import logging
import os
import signal
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_ended
from celery_steps import followed
from celery_steps.agent_claims import Away, Call, Claims, call_of
from celery_steps.agent_socket import listening
from celery_steps.agent_workers import Workers, described_worker
from celery_steps.followed import Held
from minutebook.error_text import text_of
from models.errors import LeaseLost
from models.store.operations.admission import KeptBack
from models.store.operations.finish import Ended
from models.store.ticks import Seen
from runtime.clock import monotonic
from runtime.config import Settings
from runtime.database import DATABASE_AWAY
from runtime.db_retry import persist
from runtime.skew import SkewWatch
from runtime.supervisor import PARENT

logger = logging.getLogger("minutebook.agent")

WATCH_S = 0.5
CHECK_S = 0.05
QUIET_S = 1.0
# The longest request, in bytes: a task's progress or end.
LONGEST_LINE = 16 * 2**20


class Agent:
    """Serves workers' processes until told to stop.

    An agent that a worker started serves that one, and ends when the worker is gone and none of its
    processes holds an operation. A sidecar (`worker` is None) serves all that connect.
    """

    def __init__(
        self, engine: sa.Engine, settings: Settings, worker: Seen | None, group: str | None = None
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.worker = worker
        # The group that may connect, beside the agent's own account.
        self.group = group
        self.stop = threading.Event()
        # A sidecar ends once its workers have left.
        self.leave = threading.Event()
        self.claims = Claims(engine, settings.alert)
        self.workers = Workers(engine, SkewWatch(settings.clock.max_skew_s), worker)
        self._sessions: set[Session] = set()
        self._lock = threading.Lock()

    def serve(self, path: Path) -> None:
        """Answer at `path` until stopped; then wait for the operations that are still held."""
        agent = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                session = Session(agent, self.rfile, self.wfile)
                with agent.counted(session):
                    session.serve()

        # Before listening: a worker that finds its agent is recorded as following.
        self.workers.record()
        with listening(path, Handler, self.group) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with self._recording():
                logger.info("agent serves %s", path)
                self._wait_for_the_end()
                self._wait_for_sessions()
            server.shutdown()
        path.unlink(missing_ok=True)
        self.workers.record_stop()

    def _wait_for_the_end(self) -> None:
        parent = int(os.environ.get(PARENT, "0"))
        while not self.stop.wait(WATCH_S):
            if parent and os.getppid() != parent:
                logger.warning("the worker is gone; waiting for what its processes still run")
                break
            if self.leave.is_set():
                logger.info("stopping when the last worker has left; a second signal stops it now")
                break

    def _wait_for_sessions(self) -> None:
        """Wait until no session is open; a connection may not be accepted yet."""
        quiet_since = monotonic()
        while not self.stop.wait(CHECK_S) and monotonic() - quiet_since < QUIET_S:
            if self._sessions:
                quiet_since = monotonic()

    @contextmanager
    def counted(self, session: "Session") -> Iterator[None]:
        with self._lock:
            self._sessions.add(session)
        try:
            yield
        finally:
            with self._lock:
                self._sessions.discard(session)

    def is_asked_elsewhere(self, session: "Session") -> bool:
        """Return whether the same call asked on another connection, which is still served."""
        with self._lock:
            others = self._sessions - {session}
        return any(other.call == session.call for other in others)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Keep recording the workers during the block, and never after it."""
        ended = threading.Event()

        def keep_recording() -> None:
            while not ended.wait(self.settings.worker.heartbeat_s):
                self.workers.record()

        recording = threading.Thread(target=keep_recording, daemon=True)
        recording.start()
        try:
            yield
        finally:
            ended.set()
            recording.join()


class Session:
    """One connection: at most one operation, from its claim to its end."""

    def __init__(self, agent: Agent, source: Any, sink: Any) -> None:
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
            logger.warning("a connection broke: %s", error)
        except Exception:
            logger.exception("a connection is closed after an unexpected error")
        if self.held is not None:
            self._give_back(self.held)
        elif self.call is not None and self.is_in_doubt:
            self._give_back_in_doubt(self.call)
        if self.worker is not None:
            self.agent.workers.left(self.worker)

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["verb"]:
            case "claim" | "resume" if self.held is not None:
                return {"state": "refused", "reason": f"this connection holds {self.held.id}"}
            case "worker" | "claim" | "resume" | "discarded" as verb:
                answers = {
                    "worker": self._heard,
                    "claim": self._claim,
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

    def _claim(self, asked: dict[str, Any]) -> dict[str, Any]:
        call = self.call = call_of(asked)
        if call.again and self.agent.is_asked_elsewhere(self):
            # The connection that broke may hold it still, and is about to give it back.
            return {"state": "early", "reason": "another connection asks for it"}
        found = self.agent.claims.claim(call)
        if isinstance(found, Away):
            self.is_in_doubt = found.is_in_doubt
            return {"state": "away", "reason": found.reason, "put_back": True}
        if isinstance(found, KeptBack):
            logger.info("operation %s attempt %d: not started, %s", *call.its, found.why)
            send_ended(self.agent.engine, found.ended)
            is_early = found is followed.EARLY
            return {"state": "early" if is_early else "refused", "reason": found.why}
        self.held, claimed = found
        logger.info("%s: operation %s started (attempt %d)", claimed.triggerer, *call.its)
        return {
            "state": "claimed",
            **followed.described(claimed),
            "limits": self._limits(self.held),
        }

    def _limits(self, held: Held) -> dict[str, float]:
        worker = self.agent.settings.worker
        return {
            "time_limit_s": held.plan.time_limit.total_seconds(),
            "heartbeat_s": worker.heartbeat_s,
            "cancel_grace_s": worker.cancel_grace_s,
            "soft_limit_s": worker.soft_limit_s,
            "hard_limit_s": worker.hard_limit_s,
        }

    def _resume(self, asked: dict[str, Any]) -> dict[str, Any]:
        its = (UUID(asked["id"]), int(asked["attempt"]))
        try:
            self.held = persist(
                self.agent.engine, lambda connection: followed.resume(connection, *its)
            )
        except LeaseLost as error:
            return {"state": "lost", "reason": str(error)}
        return {"state": "resumed"}

    def _beat(self, held: Held, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            with self.agent.engine.begin() as connection:
                is_cancelled = followed.beat(connection, held, asked.get("progress") or {})
        except LeaseLost:
            self.held = None
            return {"state": "lost"}
        except DATABASE_AWAY as error:
            return {"state": "away", "reason": str(error)}
        return {"state": "cancelled" if is_cancelled else "running"}

    def _end(self, held: Held, asked: dict[str, Any]) -> dict[str, Any]:
        alerts = self.agent.settings.alert
        try:
            ended = persist(self.agent.engine, lambda c: followed.write_end(c, held, asked, alerts))
        except LeaseLost as error:
            self.held = None
            logger.warning("%s; nothing more is written", error)
            return {"state": "lost"}
        self._report_end(held, ended)
        return {"state": ended.state}

    def _discarded(self, asked: dict[str, Any]) -> dict[str, Any]:
        """End an operation whose message Celery discarded: its task was revoked or is unknown."""
        its, alerts = (UUID(asked["id"]), int(asked["attempt"])), self.agent.settings.alert
        try:
            with self.agent.engine.begin() as connection:
                ended = followed.end_discarded(connection, its, asked, alerts)
        except (followed.JustBeingSent, sa.exc.IntegrityError, *DATABASE_AWAY) as error:
            return {"state": "later", "reason": str(error)}
        if ended is not None:
            logger.info("operation %s: its message was discarded: %s", its[0], asked["reason"])
        send_ended(self.agent.engine, ended)
        return {"state": "noted"}

    def _give_back(self, held: Held) -> None:
        """End an attempt whose process is gone, without waiting for its lease to expire."""
        alerts = self.agent.settings.alert
        try:
            ended = persist(self.agent.engine, lambda c: followed.end_left_behind(c, held, alerts))
            self._report_end(held, ended)
        except (LeaseLost, sa.exc.SQLAlchemyError) as error:
            logger.warning("operation %s is left to the sweep: %s", held.id, error)

    def _give_back_in_doubt(self, call: Call) -> None:
        """Give back an attempt whose claim may have been committed; its worker put it back."""
        engine, alerts = self.agent.engine, self.agent.settings.alert
        doubtful = (call.its, call.delivery)
        try:
            ended = persist(engine, lambda c: followed.give_back_in_doubt(c, *doubtful, alerts))
            send_ended(engine, ended)
        except sa.exc.SQLAlchemyError as error:
            logger.warning("operation %s is left to the sweep: %s", call.its[0], error)

    def _report_end(self, held: Held, ended: Ended) -> None:
        self.held = None
        logger.info("operation %s attempt %d ended: %s", held.id, held.attempt, ended.state)
        send_ended(self.agent.engine, ended)


def stop_on_signals(agent: Agent) -> None:
    """Stop at once on a signal; a sidecar on the second one, or once it is free after the first."""

    def end(*_: object) -> None:
        is_asked_first = agent.worker is None and not agent.leave.is_set()
        (agent.leave if is_asked_first else agent.stop).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
