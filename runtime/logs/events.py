"""Loggers of events: each line has the name of what happened, which stays when its words change.

JSON lines have the name as `event`, and the values of the line under the names in its braces.
`docs/reference/log-events.md` lists all of them.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter

from runtime.clock import monotonic

# What steps log. One logger for all operations: loggers are never freed.
STEP_LOGGER = "minutebook.operation"
STEP_LINE = "step_line"
# Each process repeats these lines at most once in so many seconds: they come with each new try.
RARE = {"database_unavailable", "heartbeat_failed", "queue_unreadable"}
RARE_S = 60.0
_said_at: dict[str, float] = {}


@dataclass(frozen=True, slots=True)
class Line:
    """What one line says: its text has the name of each value in braces."""

    event: str
    text: str
    values: Mapping[str, object]

    def __str__(self) -> str:
        return self.text.format_map(self.values)


class EventLog:
    """A logger whose calls name the event, the text, and the values in the order of the text."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, text: str, *values: object) -> None:
        self._log(logging.INFO, event, text, values)

    def warning(
        self, event: str, text: str, *values: object, exc_info: BaseException | None = None
    ) -> None:
        self._log(logging.WARNING, event, text, values, exc_info)

    def error(
        self, event: str, text: str, *values: object, exc_info: BaseException | None = None
    ) -> None:
        self._log(logging.ERROR, event, text, values, exc_info)

    def exception(self, event: str, text: str, *values: object) -> None:
        """Log an error with the traceback of the exception that is being handled."""
        self._log(logging.ERROR, event, text, values, exc_info=True)

    def log(self, level: int, event: str, text: str, *values: object) -> None:
        self._log(level, event, text, values)

    def _log(
        self,
        level: int,
        event: str,
        text: str,
        values: tuple[object, ...],
        exc_info: BaseException | bool | None = None,
    ) -> None:
        if self._logger.isEnabledFor(level) and not _was_just_said(event, text):
            line = Line(event, text, dict(zip(names_in(text), values, strict=True)))
            self._logger.log(level, line, exc_info=exc_info, stacklevel=3)


def _was_just_said(event: str, text: str) -> bool:
    """Return whether a rare line was logged a moment ago; it counts as logged now otherwise."""
    if event not in RARE:
        return False
    now = monotonic()
    if now - _said_at.get(text, -RARE_S) < RARE_S:
        return True
    _said_at[text] = now
    return False


@lru_cache(maxsize=256)
def names_in(text: str) -> tuple[str, ...]:
    """Return the names in the braces of a text, in order."""
    return tuple(name for _, name, _, _ in Formatter().parse(text) if name is not None)
