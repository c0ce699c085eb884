"""Answer the same four questions for every kind of rule, without walking.

Ranges are half-open (since, until]; instants are aware UTC, whole seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

from cron import Blackout

ONE_SECOND = timedelta(seconds=1)
NO_UID = UUID(int=0)
# No rule has an occurrence before it.
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
# No cron rule and no event of the sun has an occurrence from here on.
END = datetime(2200, 1, 1, tzinfo=UTC)
# How many closed days in a row are searched for an open occurrence, so that exceptions that leave
# nothing cannot stall the search.
MOST_CLOSED = 2_000


class Schedule(Protocol):
    """The occurrences of one rule."""

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after`, or None."""

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest occurrence in (since, until], or None."""

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until], ascending."""

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of occurrences in (since, until]."""


@dataclass(frozen=True, slots=True)
class Once:
    """A single occurrence, or none (None): the clock makes no event occurrence due."""

    due_at: datetime | None

    def next(self, after: datetime) -> datetime | None:
        """Return the occurrence if it lies after `after`."""
        return self.due_at if self.due_at is not None and self.due_at > after else None

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the occurrence if it lies in (since, until]."""
        return next(iter(self.between(since, until)), None)

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrence, if it lies in (since, until], as a list."""
        return [self.due_at] if self.due_at is not None and since < self.due_at <= until else []

    def count(self, since: datetime, until: datetime) -> int:
        """Return 1 if the occurrence lies in (since, until], else 0."""
        return len(self.between(since, until))


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid anchor + n·every for n ≥ first_n, independent of runs and restarts."""

    anchor: datetime
    every: timedelta
    first_n: int

    def next(self, after: datetime) -> datetime | None:
        """Return the first grid point strictly after `after`; None past the calendar's end."""
        return self._at(max(self._steps_until(after) + 1, self.first_n))

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest grid point in (since, until], or None."""
        n = self._steps_until(until)
        point = self._at(n) if n >= self.first_n else None
        return point if point is not None and point > since else None

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the grid points in (since, until], ascending."""
        first = max(self._steps_until(since) + 1, self.first_n)
        return [self.anchor + n * self.every for n in range(first, self._steps_until(until) + 1)]

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of grid points in (since, until]."""
        before_first = self.first_n - 1
        reached = max(self._steps_until(until), before_first)
        return max(0, reached - max(self._steps_until(since), before_first))

    def _steps_until(self, instant: datetime) -> int:
        return (instant - self.anchor) // self.every

    def _at(self, n: int) -> datetime | None:
        try:
            return self.anchor + n * self.every
        except OverflowError:
            return None


@dataclass(frozen=True, slots=True)
class Bounded:
    """A schedule cut to [starts_at, ends_at)."""

    inner: Schedule
    starts_at: datetime | None
    ends_at: datetime | None

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after` within the bounds, or None."""
        if self.starts_at is not None:
            after = max(after, self.starts_at - ONE_SECOND)
        found = self.inner.next(after)
        return None if found is None or (self.ends_at and found >= self.ends_at) else found

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest occurrence in (since, until] within the bounds, or None."""
        since, until = self._cut(since, until)
        return self.inner.last(since, until) if since < until else None

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until] within the bounds, ascending."""
        since, until = self._cut(since, until)
        return self.inner.between(since, until) if since < until else []

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of occurrences in (since, until] within the bounds."""
        since, until = self._cut(since, until)
        return self.inner.count(since, until) if since < until else 0

    def _cut(self, since: datetime, until: datetime) -> tuple[datetime, datetime]:
        if self.starts_at is not None:
            since = max(since, self.starts_at - ONE_SECOND)
        if self.ends_at is not None:
            until = min(until, self.ends_at - ONE_SECOND)
        return since, until


@dataclass(frozen=True, slots=True)
class Excepting:
    """A schedule without its occurrences on closed days.

    If `most_closed` closed days in a row have one, there is no other: the search ends.
    """

    inner: Schedule
    closed: Blackout
    most_closed: int = MOST_CLOSED

    def next(self, after: datetime) -> datetime | None:
        """Return the first open occurrence strictly after `after`, or None."""
        for _ in range(self.most_closed):
            found = self.inner.next(after)
            piece = None if found is None else self.closed.at(found)
            if piece is None or piece.closed is None:
                return found
            after = datetime.fromtimestamp(piece.end - 1, UTC)
        return None

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest open occurrence in (since, until], or None."""
        for _ in range(self.most_closed):
            found = self.inner.last(since, until) if since < until else None
            piece = None if found is None else self.closed.at(found)
            if piece is None or piece.closed is None:
                return found
            until = datetime.fromtimestamp(piece.begin - 1, UTC)
        return None

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the open occurrences in (since, until], ascending."""
        pieces = self.closed.open_pieces(since, until)
        return [at for begin, end in pieces for at in self.inner.between(begin, end)]

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of open occurrences in (since, until]."""
        return sum(self.inner.count(*piece) for piece in self.closed.open_pieces(since, until))


def bounded(schedule: Schedule, starts_at: datetime | None, ends_at: datetime | None) -> Schedule:
    """Return a schedule within [starts_at, ends_at)."""
    is_unbounded = starts_at is None and ends_at is None
    return schedule if is_unbounded else Bounded(schedule, starts_at, ends_at)


@dataclass(frozen=True, slots=True)
class Union:
    """The instants that any of some schedules names."""

    inner: Sequence[Schedule]

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after`, or None."""
        found = [one.next(after) for one in self.inner]
        return min((at for at in found if at is not None), default=None)

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest occurrence in (since, until], or None."""
        found = [one.last(since, until) for one in self.inner]
        return max((at for at in found if at is not None), default=None)

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until], ascending, each once."""
        return sorted({at for one in self.inner for at in one.between(since, until)})

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of occurrences in (since, until]; lists only the rarer ones."""
        by_count = sorted((one.count(since, until), n) for n, one in enumerate(self.inner))
        if not by_count:
            return 0
        *others, (count, most) = by_count
        rarer = {at for _, n in others for at in self.inner[n].between(since, until)}
        return count + sum(self.inner[most].count(at - ONE_SECOND, at) == 0 for at in rarer)


def union(schedules: Sequence[Schedule]) -> Schedule:
    """Return one schedule with the occurrences of all."""
    return schedules[0] if len(schedules) == 1 else Union(schedules)
