"""What was made a moment ago, for all who ask: many ask the database no more often than one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from runtime.clock import monotonic
from views.installation import Installation

T = TypeVar("T")


@dataclass
class Kept(Generic[T]):
    """What was last made of each scope, for all who look."""

    _make: Callable[[Installation], T]
    _kept: dict[int | None, tuple[float, T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, opened: Installation, oldest_s: float) -> T:
        """Return what is made of a scope, at most `oldest_s` old."""
        key = opened.scope.small_app_id
        with self._lock:
            known = self._kept.get(key)
            if known is not None and monotonic() - known[0] < oldest_s:
                return known[1]
            made = self._make(opened)
            self._kept[key] = (monotonic(), made)
            return made

    def forget(self) -> None:
        """Let the next who looks see what is now: after a change."""
        with self._lock:
            self._kept.clear()
