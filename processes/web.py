"""Run the HTTP door: one process, stopped in order within ten seconds."""

import logging
import os
import resource
import signal
import socket
from contextlib import suppress
from threading import Event, Thread, Timer
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from models.errors import SchedulerError
from models.store import workers
from processes import watch
from processes.garbage import keep_what_is_loaded
from processes.listening import listening, listening_at
from runtime.database import DATABASE_AWAY, unhurried
from runtime.logs import set_up_logs
from runtime.logs.events import EventLog
from runtime.sections.web import WebSettings
from runtime.supervisor import end_with_parent
from services.installation import Installation
from web.app import HEADERS, make_app, stop_waiting
from web.dispatcher import AT_ONCE
from web.middleware import BehindProxies, QuotedPath, WithHeaders
from web.routing import THREADS, WORKER_THREADS

logger = EventLog("minutebook.web")

STOP_WITHIN_S = 10
# How long threads may take to end when no request is left.
THREADS_END_WITHIN_S = 1.0
# Closes idle connections of clients that disappeared.
KEEP_ALIVE_S = 75
# In the home folder: whoever may open it follows tasks without a token.
SOCKET = "web.sock"


class _Server(uvicorn.Server):
    """Answers the workers that wait for a job first."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._served = app

    def end_soon(self, _number: int, _frame: FrameType | None) -> None:
        """Let the server end right after its start."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        stop_waiting(self._served)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving; then end, even if threads still wait for a database that is silent."""
        await super().shutdown(sockets)
        leaving = Timer(THREADS_END_WITHIN_S, _end)
        leaving.daemon = True
        leaving.start()


def _end() -> None:
    logger.warning("stop_not_awaited", "the database does not answer: ended without waiting for it")
    os._exit(0)


def serve(
    installation: Installation, host: str | None, port: int | None, root_path: str | None
) -> None:
    """Serve HTTP until SIGTERM or SIGINT.

    Raises Refused if the address is taken.
    """
    settings = installation.settings
    below = settings.web.root_path if root_path is None else root_path
    set_up_logs(settings.log, "web")
    _open_as_many_as_allowed()
    # Leave out its lines about start and stop; ours say more.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # A connection for each thread.
    installation.connections = THREADS + WORKER_THREADS + AT_ONCE
    app = make_app(installation)
    config = configuration(app, settings.web, below)
    with listening(host or settings.web.host, settings.web.port if port is None else port) as own:
        address, number = own.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        logger.info(
            "web_started", "the API is at http://{host}:{port}{path}/api", shown, number, below
        )
        server = _Server(config, app)
        local = listening_at(settings.home / SOCKET)
        app.state.socket = None if local is None else local.getsockname()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Until the server has its own handlers, and when it raises the signal again at its end.
            signal.signal(number, server.end_soon)
        end_with_parent()
        watch.start(settings)
        keep_what_is_loaded()
        Thread(target=_say_alive, args=(installation,), name="alive", daemon=True).start()
        server.run(sockets=[own] if local is None else [own, local])


def _say_alive(installation: Installation) -> None:
    """Record every few seconds that a web process lives: else no lease of a worker runs out."""
    pause, worker = Event(), installation.settings.worker
    while True:
        try:
            with suppress(*DATABASE_AWAY, SchedulerError), unhurried(installation.engine) as made:
                workers.web_seen(made, worker.lease)
        except Exception:  # the next word must come
            logger.exception("presence_failed", "this process could not record that it lives")
        # Several times before the gap would count.
        pause.wait(worker.heartbeat_s / 2)


def _open_as_many_as_allowed() -> None:
    """Raise the limit of open files, which shells set low: each listener keeps one open."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):  # macOS allows less than it says.
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def configuration(app: FastAPI, settings: WebSettings, root_path: str) -> uvicorn.Config:
    """Return how the application is served."""
    # It leaves out this part of a path.
    app.root_path = root_path
    served: Any = WithHeaders(QuotedPath(app), HEADERS)
    return uvicorn.Config(
        BehindProxies(served, list(settings.proxies)) if settings.proxies else served,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_WITHIN_S - 2,
        timeout_keep_alive=KEEP_ALIVE_S,
        ws="none",
    )
