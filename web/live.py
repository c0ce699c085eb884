"""What changes while it is watched: one reader asks the database on behalf of all listeners."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Generic, TypeVar

import anyio.to_thread
from fastapi.sse import ServerSentEvent

from runtime.clock import monotonic
from views.view import View, json_line
from web.looks import Looks

INTERVAL_S = 0.5
# How often the tokens and sessions of all listeners are looked up, in one statement.
VALIDITY_S = 2.0
UNAUTHORIZED = "unauthorized"
Key = TypeVar("Key")


@dataclass(eq=False)
class _Listener(Generic[Key]):
    """A request that listens; it is woken when its thing has another version, or at the end."""

    key: Key
    version: str
    # The id of the token or session that the request came with.
    token_id: str
    is_refused: bool = False
    wake: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Live(Generic[Key]):
    """Sends each new version of what is watched to its listeners.

    A version is a hash of what is shown, and the id of its event: a listener that comes back with
    `Last-Event-ID` gets the present version only if it is another one. Versions that come and go
    between two looks are not sent: a listener learns the state, not each step to it.
    A stream ends soon after its token or session has expired or was revoked.
    """

    _name: str
    _read: Callable[[Collection[Key]], Mapping[Key, View]]
    _still_valid: Callable[[Collection[str]], Collection[str]]
    _looked_up_at: float = 0.0
    _watched: Counter[Key] = field(default_factory=Counter)
    _seen: dict[Key, tuple[str, str]] = field(default_factory=dict)
    _listeners: set[_Listener[Key]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.looks = Looks(
            self._look, lambda: bool(self._watched), INTERVAL_S, "nothing new is sent"
        )

    def stop(self) -> None:
        """End all streams; new ones end at once."""
        self.looks.stop()
        for listener in self._listeners:
            listener.wake.set()

    async def listen(
        self, key: Key, version: str | None, token_id: str
    ) -> AsyncIterator[ServerSentEvent]:
        """Yield the versions of a thing, the present one first unless it is `version`.

        The last event is `stopping`, or `unauthorized` once the token or session is not valid.
        """
        listener = _Listener(key, version or "", token_id)
        self._listeners.add(listener)
        self._watched[key] += 1
        self.looks.wake()
        try:
            while not self.looks.stopped and not listener.is_refused:
                seen = self._seen.get(key)
                if seen is not None and seen[0] != listener.version:
                    listener.version = seen[0]
                    yield ServerSentEvent(event=self._name, id=seen[0], raw_data=seen[1])
                else:
                    await listener.wake.wait()
                    listener.wake.clear()
            last = UNAUTHORIZED if listener.is_refused else "stopping"
            yield ServerSentEvent(event=last, raw_data="{}")
        finally:
            self._listeners.discard(listener)
            self._watched[key] -= 1
            if not self._watched[key]:
                del self._watched[key]
                self._seen.pop(key, None)

    async def _look(self) -> bool:
        keys = tuple(self._watched)
        found = await anyio.to_thread.run_sync(self._read, keys)
        for key, view in found.items():
            text = json_line(view)
            version = sha256(text.encode()).hexdigest()[:16]
            if self._seen.get(key, ("",))[0] != version and key in self._watched:
                self._seen[key] = (version, text)
        for listener in self._listeners:
            seen = self._seen.get(listener.key)
            if seen is not None and seen[0] != listener.version:
                listener.wake.set()
        await self._refuse_the_invalid()
        return False

    async def _refuse_the_invalid(self) -> None:
        if monotonic() - self._looked_up_at < VALIDITY_S:
            return
        asked = {listener.token_id for listener in self._listeners}
        valid = await anyio.to_thread.run_sync(self._still_valid, asked)
        self._looked_up_at = monotonic()
        for listener in self._listeners:
            if listener.token_id in asked and listener.token_id not in valid:
                listener.is_refused = True
                listener.wake.set()
