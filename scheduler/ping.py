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
        from urllib.error import URLError
        from urllib.request import Request, urlopen

        request = Request(self._url, headers={"User-Agent": "minutebook"})  # noqa: S310 - checked
        try:
            with urlopen(request, timeout=WITHIN_S):  # noqa: S310 - http or https by the settings
                pass
        except (URLError, OSError, ValueError) as error:
            # The URL is a secret: anyone with it can ping.
            logger.warning(
                "ping_failed", "the ping was not answered: {error}", getattr(error, "reason", error)
            )
