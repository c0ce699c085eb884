"""Schedules whose occurrences are moved by jitter.

A rule names nominal instants; its occurrences lie up to the jitter behind them.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from models.action.schedule import BEGINNING, ONE_SECOND, Schedule
from models.fingerprint import drawn_offset


@dataclass(frozen=True, slots=True)
class FixedJitter:
    """A schedule whose occurrences are all moved by the same offset."""

    inner: Schedule
    offset: timedelta

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after`, or None."""
        return _later(self.inner.next(_earlier(after, self.offset)), self.offset)

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest occurrence in (since, until], or None."""
        return _later(self.inner.last(*self._nominal(since, until)), self.offset)

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until], ascending."""
        return [at + self.offset for at in self.inner.between(*self._nominal(since, until))]

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of occurrences in (since, until]."""
        return self.inner.count(*self._nominal(since, until))

    def _nominal(self, since: datetime, until: datetime) -> tuple[datetime, datetime]:
        return _earlier(since, self.offset), _earlier(until, self.offset)


@dataclass(frozen=True, slots=True)
class RandomJitter:
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
