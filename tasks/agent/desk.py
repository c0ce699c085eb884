"""The desk of an agent: it alone asks the database, for all sessions, in groups of what waits.

No session waits for a database that is away: each waits as long as it wants for its own errand.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY, is_locked, reason_of
from runtime.logs.events import EventLog

logger = EventLog("minutebook.agent")

T = TypeVar("T")

# An answer that takes longer says that the database is slow or away.
PROMPT_S = 0.5
# How long to wait before the database is asked again for what has to be written.
AGAIN_S = 1.0
MOST_TOGETHER = 50
# While one transaction is being committed, another one begins; SQLite has one writer.
CLERKS = {"postgresql": 2}


class Errand(Generic[T]):
    """Something to ask of the database: `act`, in a transaction of one or more of them.

    One that `lasts` is asked again until the database takes it; another one ends with the error.
    """

    def __init__(self, act: Callable[[sa.Connection], T], *, lasts: bool = False) -> None:
        self.act, self.lasts = act, lasts
        self.result: T | None = None
        self.error: Exception | None = None
        # Whether its transaction may have been committed, though it has an error.
        self.is_in_doubt = False
        self._has_begun = self._is_dropped = False
        self._lock = threading.Lock()
        self._done = threading.Event()

    def carry_out(self, connection: sa.Connection) -> T | None:
        """Act, unless it was dropped; from now on it cannot be dropped."""
        with self._lock:
            self._has_begun = not self._is_dropped
        return self.act(connection) if self._has_begun else None

    def drop(self) -> bool:
        """Return whether it will never be carried out; False if it may be, or was."""
        with self._lock:
            self._is_dropped = not self._has_begun
            return self._is_dropped

    def settle(self, result: T | None, error: Exception | None = None) -> None:
        """Let those go on that wait for it."""
        with self._lock:
            self.result, self.error = result, error
        self.then()
        self._done.set()

    def then(self) -> None:
        """Act on the result, in the thread of the desk: soon done, and without the database."""

    def is_settled(self, within_s: float | None = None) -> bool:
        """Return whether it has a result or an error, once it has, or after some seconds."""
        return self._done.wait(within_s)


class Desk:
    """Carries out errands until it is closed; see the module."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._waiting: deque[Errand[Any]] = deque()
        # What the database did not take, and when to ask again.
        self._left: list[Errand[Any]] = []
        self._again_at = 0.0
        # By clerk, since when it carries out a group.
        self._busy_since: dict[int, float] = {}
        self._is_closed = False
        self._changed = threading.Condition()
        numbers = range(CLERKS.get(engine.dialect.name, 1))
        self._clerks = [
            threading.Thread(target=self._serve, args=(number,), name="desk", daemon=True)
            for number in numbers
        ]
        for clerk in self._clerks:
            clerk.start()

    def submit(self, errand: Errand[Any]) -> None:
        """Let an errand be carried out soon."""
        with self._changed:
            self._waiting.append(errand)
            self._changed.notify()

    def is_away(self) -> bool:
        """Return whether the database did not answer just now, or takes long."""
        with self._changed:
            since = list(self._busy_since.values())
        are_stuck = len(since) == len(self._clerks) and monotonic() - max(since) > PROMPT_S
        return bool(self._left) or are_stuck

    def is_free(self) -> bool:
        """Return whether nothing waits, and nothing is being carried out."""
        with self._changed:
            return not (self._waiting or self._left or self._busy_since)

    def close(self) -> None:
        """Carry out nothing more; what is being carried out ends first, for a moment."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for clerk in self._clerks:
            clerk.join(AGAIN_S)

    def _serve(self, clerk: int) -> None:
        while (group := self._next(clerk)) is not None:
            self._carry_out(group)

    def _next(self, clerk: int) -> list[Errand[Any]] | None:
        with self._changed:
            self._busy_since.pop(clerk, None)
            while not self._is_closed:
                if (group := self._group()) is not None:
                    self._busy_since[clerk] = monotonic()
                    return group
                pause_s = max(0.0, self._again_at - monotonic()) if self._left else None
                self._changed.wait(pause_s)
            return None

    def _group(self) -> list[Errand[Any]] | None:
        if self._left and monotonic() >= self._again_at:
            group, self._left = self._left[:MOST_TOGETHER], self._left[MOST_TOGETHER:]
            return group
        number = min(len(self._waiting), MOST_TOGETHER)
        return [self._waiting.popleft() for _ in range(number)] or None

    def _carry_out(self, group: list[Errand[Any]]) -> None:
        found: list[Any] = []
        try:
            with self.engine.begin() as connection:
                found = [one.carry_out(connection) for one in group]
        except Exception as error:
            is_away = isinstance(error, DATABASE_AWAY) and not is_locked(error)
            if len(group) > 1 and not is_away:
                # One of them is lost, locked or wrong; all that it wrote is undone.
                for one in group:
                    self._carry_out([one])
            elif isinstance(error, DATABASE_AWAY):
                self._leave(group, error, is_in_doubt=is_away and len(found) == len(group))
            else:
                group[0].settle(None, error)
        else:
            for one, result in zip(group, found, strict=True):
                one.settle(result)

    def _leave(self, group: list[Errand[Any]], error: Exception, *, is_in_doubt: bool) -> None:
        logger.warning(
            "database_unavailable",
            "database unavailable, trying again: {error}",
            reason_of(error),
        )
        lasting = [one for one in group if one.lasts]
        with self._changed:
            self._left = [*lasting, *self._left]
            self._again_at = monotonic() + AGAIN_S
        for one in group:
            if not one.lasts:
                one.is_in_doubt = is_in_doubt
                one.settle(None, error)
