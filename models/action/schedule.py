"""Answer the same four questions for every kind of rule, without walking.

Ranges are half-open (since, until]; instants are aware UTC, whole seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

from cron import Blackout
from models.fingerprint import drawn_offset

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
    """The grid anchor + n·every for n ≥ 0, independent of runs and restarts."""

    anchor: datetime
    every: timedelta

    def next(self, after: datetime) -> datetime | None:
        """Return the first grid point strictly after `after`; None past the calendar's end."""
        return self._at(max(self._steps_until(after) + 1, 0))

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest grid point in (since, until], or None."""
        n = self._steps_until(until)
        point = self._at(n) if n >= 0 else None
        return point if point is not None and point > since else None

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the grid points in (since, until], ascending."""
        first = max(self._steps_until(since) + 1, 0)
        return [self.anchor + n * self.every for n in range(first, self._steps_until(until) + 1)]

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of grid points in (since, until]."""
        return max(0, self._steps_until(until) - max(self._steps_until(since), -1))

    def _steps_until(self, instant: datetime) -> int:
        return (instant - self.anchor) // self.every

    def _at(self, n: int) -> datetime | None:
        try:
            return self.anchor + n * self.every
        except OverflowError:
            return None


@dataclass(frozen=True, slots=True)
class Moved:
    """A schedule moved by an offset, such as a fixed jitter, and cut to [starts_at, ends_at)."""

    inner: Schedule
    offset: timedelta = timedelta(0)
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after` within the bounds, or None."""
        if self.starts_at is not None:
            after = max(after, self.starts_at - ONE_SECOND)
        found = _later(self.inner.next(_earlier(after, self.offset)), self.offset)
        return None if found is None or (self.ends_at and found >= self.ends_at) else found

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest occurrence in (since, until] within the bounds, or None."""
        return _later(self.inner.last(*self._nominal(since, until)), self.offset)

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until] within the bounds, ascending."""
        return [at + self.offset for at in self.inner.between(*self._nominal(since, until))]

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of occurrences in (since, until] within the bounds."""
        return self.inner.count(*self._nominal(since, until))

    def _nominal(self, since: datetime, until: datetime) -> tuple[datetime, datetime]:
        """Return the range of the schedule within, empty beyond the bounds."""
        if self.starts_at is not None:
            since = max(since, self.starts_at - ONE_SECOND)
        if self.ends_at is not None:
            until = min(until, self.ends_at - ONE_SECOND)
        return _earlier(since, self.offset), _earlier(max(since, until), self.offset)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A schedule each of whose occurrences is moved by an offset of its own in [0, spread).

    The offset is a hash of the action and the nominal instant. It ends before the next instant of
    `rule`, which is `inner` without exceptions: so occurrences keep their order, no two are one,
    and the last nominal instant is the only one that may still be ahead.
    """

    inner: Schedule
    rule: Schedule
    uid: UUID
    spread: timedelta

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after`, or None."""
        ahead = self._ahead(after)
        return self._moved(self.inner.next(after)) if ahead is None else ahead

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest occurrence in (since, until], or None."""
        nominal = self._last(since, until)
        moved = self._moved(nominal)
        if nominal is not None and moved is not None and moved > until:
            moved = self._moved(self._last(since, nominal - ONE_SECOND))
        return moved if moved is not None and moved > since else None

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until], ascending."""
        ahead = self._ahead(since)
        moved = [self._moved(at) for at in self.inner.between(since, until)]
        return [at for at in (ahead, *moved) if at is not None and at <= until]

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of occurrences in (since, until]."""
        if until <= since:
            return 0
        begun, pending = self._ahead(since) is not None, self._ahead(until) is not None
        return self.inner.count(since, until) + begun - pending

    def nominal(self, until: datetime) -> datetime | None:
        """Return the last nominal instant at or before `until` that may move behind it."""
        return self._last(until, until)

    def _last(self, since: datetime, until: datetime) -> datetime | None:
        return self.inner.last(_earlier(since, self.spread), until)

    def _ahead(self, instant: datetime) -> datetime | None:
        """Return the occurrence after `instant` whose nominal one is not, or None."""
        moved = self._moved(self.nominal(instant))
        return moved if moved is not None and moved > instant else None

    def _moved(self, nominal: datetime | None) -> datetime | None:
        if nominal is None:
            return None
        following = self.rule.next(nominal)
        room = self.spread if following is None else min(self.spread, following - nominal)
        return _later(nominal, drawn_offset(self.uid, nominal, room))


def _earlier(instant: datetime, span: timedelta) -> datetime:
    """Return `instant` − `span`, but no instant before all rules unless `instant` is one."""
    return instant if instant <= BEGINNING else max(instant - span, BEGINNING)


def _later(instant: datetime | None, span: timedelta) -> datetime | None:
    try:
        return None if instant is None else instant + span
    except OverflowError:
        return None


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
    return schedule if is_unbounded else Moved(schedule, starts_at=starts_at, ends_at=ends_at)


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
