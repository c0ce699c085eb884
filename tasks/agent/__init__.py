"""The agent beside workers of the user's application: serves operations over a unix socket.

Each connection serves one operation. If it closes before the operation ends, the process that held
it was killed: the kernel closes its sockets.
"""

import os
import signal
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from models.store.presence import Seen
from runtime.clock import monotonic
from runtime.config import Settings
from runtime.logs.events import EventLog
from runtime.skew import SkewWatch
from runtime.stopping import Stop
from runtime.supervisor import PARENT
from tasks.agent.bounds import Bounds
from tasks.agent.claims import Claims
from tasks.agent.session import Session
from tasks.agent.socket import listening
from tasks.agent.workers import Workers

logger = EventLog("minutebook.agent")

WATCH_S = 0.5
CHECK_S = 0.05
QUIET_S = 1.0


class Agent:
    """Serves workers' processes until told to stop.

    An agent that a worker started serves that one, and ends when the worker is gone and none of its
    processes holds an operation. A sidecar (`worker` is None) serves all that connect.
    """

    def __init__(
        self,
        engine: sa.Engine,
        settings: Settings,
        worker: Seen | None,
        group: str | None = None,
        apps: tuple[str, ...] = (),
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.worker = worker
        # The group that may connect, beside the agent's own account.
        self.group = group
        self.stop = Stop()
        # A sidecar ends once its workers have left.
        self.leave = Stop()
        bounds = Bounds(settings.celery.all_tasks, apps, settings.celery.application)
        self.workers = Workers(engine, SkewWatch(settings.clock.max_skew_s), worker, bounds)
        self.claims = Claims(engine, settings.alert, bounds, self.workers.follows)
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
            with self._recording():
                threading.Thread(target=server.serve_forever, daemon=True).start()
                logger.info("agent_started", "agent serves {path}", path)
                self._wait_for_the_end()
                self._wait_for_sessions()
            server.shutdown()
        path.unlink(missing_ok=True)
        self.workers.record_stop()

    def _wait_for_the_end(self) -> None:
        parent = int(os.environ.get(PARENT, "0"))
        while not self.stop.wait(WATCH_S):
            if parent and os.getppid() != parent:
                logger.warning(
                    "agent_worker_gone",
                    "the worker is gone; waiting for what its processes still run",
                )
                break
            if self.leave.is_set():
                logger.info(
                    "agent_stopping",
                    "stopping when the last worker has left; a second signal stops it now",
                )
                break

    def _wait_for_sessions(self) -> None:
        """Wait until no session is open; a connection may not be accepted yet."""
        quiet_since = monotonic()
        while not self.stop.wait(CHECK_S) and monotonic() - quiet_since < QUIET_S:
            if self._sessions:
                quiet_since = monotonic()

    @contextmanager
    def counted(self, session: Session) -> Iterator[None]:
        with self._lock:
            self._sessions.add(session)
        try:
            yield
        finally:
            with self._lock:
                self._sessions.discard(session)

    def is_asked_elsewhere(self, session: Session) -> bool:
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


def stop_on_signals(agent: Agent) -> None:
    """Stop at once on a signal; a sidecar on the second one, or once it is free after the first."""

    def end(*_: object) -> None:
        is_asked_first = agent.worker is None and not agent.leave.is_set()
        (agent.leave if is_asked_first else agent.stop).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
