"""What one connection may cost the HTTP door: uvicorn's protocol, bounded in time and in memory."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD = 64 * 1024


class BoundedProtocol(HttpToolsProtocol):
    """Ends a connection whose client does not do its part within `patience_s`.

    A client has to send the head of its request, at most 64 KiB, and to read what it is sent.
    uvicorn waits for both without a limit, and its parser keeps a head of any length.
    """

    patience_s = 30.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._sending: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._is_in_head = False
        # Bytes received since the application was last handed any.
        self._unheard = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_sending()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_sent()
        self._has_read()
        super().connection_lost(exc)

    # What the client sends

    def data_received(self, data: bytes) -> None:
        self._unheard += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            self._expect_reading()
        elif self._unheard > LONGEST_HEAD:
            self._refuse()
        elif self._is_in_head:
            self._expect_sending()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._unheard = 0
        self._has_sent()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unheard = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unheard = 0
        self._has_sent()
        super().on_message_complete()

    # What it reads

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._has_read()

    def on_response_complete(self) -> None:
        is_answered_early = self.cycle.more_body
        super().on_response_complete()
        if self.transport.is_closing():
            self._expect_reading()
        elif is_answered_early and not self.pipeline:
            # The rest of its body is passed over, but not for ever.
            self._expect_sending()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._expect_reading()

    # What becomes of a client that does neither

    def _expect_sending(self) -> None:
        if self._sending is None:
            self._sending = self.loop.call_later(self.patience_s, self.transport.abort)

    def _expect_reading(self) -> None:
        if self._reading is None:
            self._reading = self.loop.call_later(self.patience_s, self.transport.abort)

    def _has_sent(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _has_read(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _refuse(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.send_400_response(f"The head of a request has at most {LONGEST_HEAD} bytes.")
            self._expect_reading()
        else:
            self.transport.abort()


def bounded(patience_s: float) -> type[BoundedProtocol]:
    """Return the protocol with that patience."""

    class Patient(BoundedProtocol):
        pass

    Patient.patience_s = patience_s
    return Patient
