"""Recent results, shared by all requests: many ask the database no more often than one."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from runtime.clock import monotonic
from services.installation import Installation

T = TypeVar("T")

# How many scopes have a result kept: those that were asked for last.
MOST = 1000


@dataclass(eq=False, slots=True)
class _Made(Generic[T]):
    """The last result of one scope, and its time; the lock is held while it is made."""

    lock: Lock = field(default_factory=Lock)
    last: tuple[float, T] | None = None


@dataclass
class TtlCache(Generic[T]):
    """The last result of each scope, shared by all requests; no scope waits for another."""

    _make: Callable[..., T]
    _kept: dict[tuple[Hashable, ...], _Made[T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, opened: Installation, oldest_s: float, *asked: Hashable) -> T:
        """Return the result of a scope for what is asked of it, at most `oldest_s` old."""
        made = self._of((opened.scope.small_app_id, *asked))
        with made.lock:
            if made.last is None or monotonic() - made.last[0] >= oldest_s:
                value = self._make(opened, *asked)
                made.last = (monotonic(), value)
            return made.last[1]

    def forget(self) -> None:
        """Let the next request see the present state: after a change."""
        with self._lock:
            self._kept.clear()

    def _of(self, key: tuple[Hashable, ...]) -> _Made[T]:
        with self._lock:
            made = self._kept.pop(key, None) or _Made()
            self._kept[key] = made
            if len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
            return made
