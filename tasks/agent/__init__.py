"""The agent beside workers of the user's application: serves operations over a unix socket.

Each connection serves one operation at a time. If it closes before the operation ends, the process
that held it was killed: the kernel closes its sockets.
"""

import os
import signal
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from models.store.workers import Heartbeat
from runtime.clock import monotonic
from runtime.config import Settings
from runtime.logs.events import EventLog
from runtime.skew import SkewWatch
from runtime.stopping import Stop
from runtime.supervisor import PARENT
from tasks.agent.bounds import Bounds
from tasks.agent.claims import Claims
from tasks.agent.desk import Desk
from tasks.agent.details import Details
from tasks.agent.ends import Ends
from tasks.agent.session import Session
from tasks.agent.socket import listening
from tasks.agent.spool import Spool
from tasks.agent.workers import Workers

logger = EventLog("minutebook.agent")

WATCH_S = 0.5
CHECK_S = 0.05
QUIET_S = 1.0
# How long a shared agent stays without a worker: one that is restarted finds it still.
LINGER_S = 10.0
# How long to wait for a database that is away after the last worker has left. What it does not take
# by then stays on the disk for the next agent.
WRITE_S = 600.0


class Agent:
    """Serves workers' processes until told to stop.

    An agent that a worker started serves that one, and ends when the worker is gone and none of its
    processes holds an operation. A sidecar (`worker` is None) serves all that connect. So does a
    shared agent (`lingers`), which ends once no worker has been connected for a while.
    """

    def __init__(
        self,
        engine: sa.Engine,
        settings: Settings,
        worker: Heartbeat | None,
        group: str | None = None,
        apps: tuple[str, ...] = (),
        *,
        lingers: bool = False,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.worker = worker
        # The group that may connect, beside the agent's own account.
        self.group = group
        self.lingers = lingers
        self.stop = Stop()
        # A sidecar ends once its workers have left.
        self.leave = Stop()
        bounds = Bounds(settings.celery.tasks, apps)
        self.workers = Workers(engine, SkewWatch(), worker, bounds)
        self.desk = Desk(engine)
        self.claims = Claims(self.desk, settings.alert, bounds, self.workers.follows)
        self.ends = Ends(
            self.desk, Spool(settings.home), settings.alert, Details.by(settings.celery)
        )
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
            its_own = path.stat().st_ino
            with self._recording():
                threading.Thread(target=server.serve_forever, daemon=True).start()
                logger.info("agent_started", "agent serves {path}", path)
                if self.lingers:
                    self._wait_until_alone()
                else:
                    self._wait_for_the_end()
                    self._wait_for_sessions()
                    self._wait_for_ends()
            server.shutdown()
            # Before the socket is closed: from then on another agent may serve the path. One that
            # took the place of this one, when it stood still, serves it already.
            with suppress(FileNotFoundError):
                if path.stat().st_ino == its_own:
                    path.unlink()
        self.desk.close()
        self.ends.close()
        self.workers.record_stop()

    def _wait_for_the_end(self) -> None:
        while not self.stop.wait(WATCH_S):
            self.ends.look()
            if _is_orphaned():
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

    def _wait_until_alone(self) -> None:
        """Wait until no worker has been connected for a while, or one is to start another agent.

        After a signal, it serves the worker that started it until that one is gone: a service
        manager stops both at once. The others start another agent then.
        """
        alone_since = monotonic()
        while not self.stop.wait(WATCH_S) and monotonic() - alone_since < LINGER_S:
            self.ends.look()
            if not self._is_alone():
                alone_since = monotonic()
            if self.leave.is_set() and _is_orphaned():
                break

    def _is_alone(self) -> bool:
        return not self._is_busy() and self.desk.is_free()

    def _is_busy(self) -> bool:
        with self._lock:
            return any(one.is_busy for one in self._sessions)

    def _wait_for_sessions(self) -> None:
        """Wait until no session is busy; a connection may not be accepted yet."""
        quiet_since = monotonic()
        while not self.stop.wait(CHECK_S) and monotonic() - quiet_since < QUIET_S:
            if self._is_busy():
                quiet_since = monotonic()

    def _wait_for_ends(self) -> None:
        give_up_at = monotonic() + WRITE_S
        while not self.desk.is_free() and not self.stop.is_set() and monotonic() < give_up_at:
            self.stop.wait(CHECK_S)

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


def _is_orphaned() -> bool:
    """Return whether the worker that started this process is gone."""
    parent = int(os.environ.get(PARENT, "0"))
    return bool(parent) and os.getppid() != parent


def stop_on_signals(agent: Agent) -> None:
    """Stop at once on a signal; a sidecar on the second one, or once it is free after the first."""

    def end(*_: object) -> None:
        is_asked_first = agent.worker is None and not agent.leave.is_set()
        (agent.leave if is_asked_first else agent.stop).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
