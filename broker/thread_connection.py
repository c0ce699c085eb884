"""Connections to a broker that are kept from one message to the next."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from kombu import Connection

from broker.errors import BROKER_ERRORS, SILENT


class Link(Protocol):
    """An open connection, with what belongs to it."""

    connection: Connection


L = TypeVar("L", bound=Link)
T = TypeVar("T")


class ThreadConnection(threading.local, Generic[L]):
    """A thread's connection, for kombu's channels are not thread-safe."""

    _pid: int | None = None
    _key: object = None
    _link: L

    def link(self, key: object, make: Callable[[], L]) -> L:
        """Return the connection; a new one after `drop`, after a fork, and for another key."""
        if not self.is_open or self._key != key:
            self.drop()
            self._link = make()
            self._pid, self._key = os.getpid(), key
        return self._link

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; one inherited by a fork belongs to the parent."""
        return self._pid == os.getpid()

    def drop(self, *, is_broken: bool = False) -> None:
        """Close the connection, if there is one, without asking the broker if it is broken."""
        was_open, self._pid = self.is_open, None
        if was_open:
            old = self._link.connection
            with suppress(*BROKER_ERRORS):
                (old.collect if is_broken else old.close)()

    def ask(self, ask: Callable[[], T]) -> T:
        """Return the result of `ask`, which uses the connection.

        If the connection was closed since its last use, `ask` is called once more; not if the
        broker was silent, because it would be silent again. Raises BROKER_ERRORS.
        """
        was_open = self.is_open
        try:
            return ask()
        except BROKER_ERRORS as error:
            self.drop(is_broken=True)
            if not was_open or isinstance(error, SILENT):
                raise
        return self.ask(ask)
