"""What was made a moment ago, for all who ask: many ask the database no more often than one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from runtime.clock import monotonic
from views.installation import Installation

T = TypeVar("T")

# Scopes of which something is kept: those that were looked at last.
MOST = 1000


@dataclass(eq=False, slots=True)
class _Made(Generic[T]):
    """What was last made of one scope, and when; the lock is held while it is made."""

    lock: Lock = field(default_factory=Lock)
    last: tuple[float, T] | None = None


@dataclass
class Kept(Generic[T]):
    """What was last made of each scope, for all who look; no scope waits for another."""

    _make: Callable[[Installation], T]
    _kept: dict[int | None, _Made[T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, opened: Installation, oldest_s: float) -> T:
        """Return what is made of a scope, at most `oldest_s` old."""
        made = self._of(opened.scope.small_app_id)
        with made.lock:
            if made.last is None or monotonic() - made.last[0] >= oldest_s:
                value = self._make(opened)
                made.last = (monotonic(), value)
            return made.last[1]

    def forget(self) -> None:
        """Let the next who looks see what is now: after a change."""
        with self._lock:
            self._kept.clear()

    def _of(self, key: int | None) -> _Made[T]:
        with self._lock:
            made = self._kept.pop(key, None) or _Made()
            self._kept[key] = made
            if len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
            return made
