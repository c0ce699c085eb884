"""The HTTP door as a real server: it listens on loopback, in a thread of this process."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from processes.listening import listening
from processes.web import configuration
from runtime.clock import wait_for
from runtime.sections.web import WebSettings
from web.app import stop_waiting


@contextmanager
def serving(app: FastAPI, settings: WebSettings) -> Iterator[str]:
    """Serve an application; yield its address on 127.0.0.1."""
    # Its words would go to the stderr of a test that has ended.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    own = listening(settings.host, 0)
    server = uvicorn.Server(configuration(app, settings, settings.root_path))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    assert wait_for(lambda: server.started, 30)
    try:
        yield f"http://127.0.0.1:{own.getsockname()[1]}"
    finally:
        stop_waiting(app)
        server.should_exit = True
        thread.join(20)
        own.close()
        assert not thread.is_alive()
