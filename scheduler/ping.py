"""Ping an external monitor after each tick."""

from threading import Thread

from runtime.logs.events import EventLog

logger = EventLog("minutebook.ping")

WITHIN_S = 5.0


class Ping:
    """Sends requests in a separate thread, one at a time: a slow answer delays no tick."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._thread: Thread | None = None

    def send(self) -> None:
        """Send a request, unless the last one still waits for its answer."""
        if not self._url or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = Thread(target=self._ask, name="ping", daemon=True)
        self._thread.start()

    def wait(self, within_s: float = WITHIN_S) -> None:
        """Wait for the answer to the last request, if any."""
        if self._thread is not None:
            self._thread.join(within_s)

    def _ask(self) -> None:
        # Imported here: a daemon without a ping URL starts faster.
        from runtime.egress.request import Request, RequestFailed, status_of

        # A name, because the URL is a secret: anyone with it can ping.
        request = Request(self._url, name="the ping URL", allow_private=True)
        try:
            status = status_of(request, WITHIN_S)
        except RequestFailed as error:
            self._failed(str(error))
        else:
            if not 200 <= status < 300:
                self._failed(f"it answered {status}")

    def _failed(self, error: str) -> None:
        logger.warning("ping_failed", "the ping was not answered: {error}", error)
