"""Rule and zone to instants: next, previous, last, between and count."""

from bisect import bisect_right
from datetime import UTC, datetime
from itertools import islice

from cron.days import NEVER
from cron.minutes import MINUTES_A_DAY, Minutes
from cron.rule import parse_rule
from cron.zone import END, OffsetPeriod, first_minute, zone_named

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_from_timestamp = datetime.fromtimestamp


class WallClock:
    """The occurrences of the minutes that a rule names on the clock of an IANA zone.

    All lie in [1970-01-01T00:00Z, 2200-01-01T00:00Z). Arguments are aware datetimes of any zone;
    results are UTC, in whole seconds. An instant without a zone or outside [1970, 2200) raises
    ValueError. Schedules are thread-safe, and equal if their class, their `rule`
    and their `zone` (IANA name) are equal.

    A rule that is a wildcard follows the wall clock through gaps and repeats. Any other rule occurs
    once, at the end of the gap, if its time falls into a gap of under 3 hours, and the first time
    only, if its time is repeated within 3 hours. Larger clock changes are neither caught up nor
    waited for. A minute begins at its second :00 on the wall clock, even where that is no full
    minute of UTC.
    """

    __slots__ = ("_periods", "_rule", "_starts", "rule", "zone")

    def __init__(self, minutes: Minutes, zone: str) -> None:
        known = zone_named(zone)
        self.rule, self.zone, self._rule = minutes.text, known.name, minutes
        self._starts = known.starts
        self._periods = known.wildcard if minutes.is_wildcard else known.fixed

    @property
    def is_hourly(self) -> bool:
        """Whether the rule has a minute in every hour."""
        times = self._rule.times
        return all(any(times[hour : hour + 60]) for hour in range(0, MINUTES_A_DAY, 60))

    def on_another_clock(self, zone: str) -> "WallClock":
        """Return the occurrences of the same rule on the clock of `zone`."""
        return WallClock(self._rule, zone)

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after`, in UTC, or None from 2200 on."""
        second = self._first(_second(after) + 1)
        return None if second is None else _from_timestamp(second, UTC)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last occurrence strictly before `before`, in UTC, or None before 1970."""
        second = self._last(_second(before, True))
        return None if second is None else _from_timestamp(second, UTC)

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest occurrence in (since, until], in UTC, or None if there is none."""
        after, second = _second(since), self._last(_second(until))
        return None if second is None or second <= after else _from_timestamp(second, UTC)

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until], in UTC and in order.

        The list has `count` entries: call that first for a long span.
        """
        end = _second(until)
        found = []
        second = self._first(_second(since) + 1)
        while second is not None and second <= end:
            found.append(_from_timestamp(second, UTC))
            second = self._first(second + 1)
        return found

    def count(self, since: datetime, until: datetime) -> int:
        """Return how many occurrences lie in (since, until], exactly, without listing them."""
        first, end = _second(since) + 1, _second(until) + 1
        if end <= first:
            return 0
        index = bisect_right(self._starts, first) - 1
        stop = bisect_right(self._starts, end)
        return sum(self._count(period, first, end) for period in self._periods[index:stop])

    def _first(self, second: int) -> int | None:
        """Return the first occurrence at or after the UTC second `second`."""
        index = bisect_right(self._starts, second) - 1
        _, end, shift, begin, _, _ = self._periods[index]
        if begin < second:
            found = self._rule.at_or_after(-(-(second + shift) // 60)) * 60 - shift
            if found < end:
                return found
        return self._first_from(index, second)

    def _first_from(self, index: int, second: int) -> int | None:
        """Return the same, from period to period.

        A period searches the days again only if its wall clock begins outside the minutes already
        known not to match: a rare rule costs one step per year, not one per period and year.
        """
        asked = known = NEVER
        for period in islice(self._periods, index, None):
            if period.start >= second and self._catches_up(period):
                return period.start
            minute = first_minute(max(second, period.begin) + period.shift)
            if not asked <= minute <= known:
                asked, known = minute, self._rule.at_or_after(minute)
            found = known * 60 - period.shift
            if found < period.end:
                return found
        return None

    def _last(self, second: int) -> int | None:
        """Return the last occurrence at or before the UTC second `second`."""
        index = bisect_right(self._starts, second) - 1
        _, _, shift, begin, _, _ = self._periods[index]
        found = self._rule.at_or_before((second + shift) // 60) * 60 - shift
        return found if found >= begin else self._last_from(index, second)

    def _last_from(self, index: int, second: int) -> int | None:
        """Return the same, back from period to period."""
        asked = known = -NEVER
        for period in self._periods[index::-1] if index >= 0 else ():
            minute = (min(second, period.end - 1) + period.shift) // 60
            if not known <= minute <= asked:
                asked, known = minute, self._rule.at_or_before(minute)
            found = known * 60 - period.shift
            if found >= period.begin:
                return found
            if self._catches_up(period):
                return period.start
        return None

    def _count(self, period: OffsetPeriod, first: int, end: int) -> int:
        """Return how many occurrences of the period lie in the UTC seconds [first, end)."""
        rule, shift = self._rule, period.shift
        low = first_minute(max(first, period.begin) + shift)
        high = first_minute(min(end, period.end) + shift)
        total = rule.count_before(high) - rule.count_before(low) if low < high else 0
        if first <= period.start < end and self._catches_up(period):
            # A minute that matches at the very end of the gap is the same occurrence.
            total += rule.at_or_after(period.shown) * 60 - shift != period.start
        return total

    def _catches_up(self, period: OffsetPeriod) -> bool:
        """Return whether a minute that the clock skipped at the start of `period` matches."""
        skipped, shown, rule = period.skipped, period.shown, self._rule
        return skipped < shown and rule.matches_in(skipped, shown)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.rule == other.rule and self.zone == other.zone

    def __hash__(self) -> int:
        return hash((self.rule, self.zone))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rule!r}, {self.zone!r})"


class CronSchedule(WallClock):
    """The occurrences of a cron rule, as in Debian's cron, by the minute.

    `rule` is in lower case, with nicknames expanded. It is a wildcard if its minute or hour field
    begins with `*`. An invalid rule or zone raises InvalidRule.
    """

    __slots__ = ()

    def __init__(self, rule: str, zone: str) -> None:
        super().__init__(parse_rule(rule), zone)


def _second(instant: datetime, strictly_before: bool = False) -> int:
    """Return the UTC second that contains `instant`, or the last whole one strictly before it.

    Raises ValueError outside [1970, 2200). The difference is taken in UTC, so `fold` counts.
    """
    try:
        since_epoch = instant - _EPOCH
    except TypeError:
        raise _refused(instant) from None
    second = since_epoch.days * 86400 + since_epoch.seconds
    if not 0 <= second < END:
        raise _refused(instant)
    if strictly_before and not since_epoch.microseconds:
        return second - 1
    return second


def _refused(instant: datetime) -> Exception:
    if not isinstance(instant, datetime):
        return TypeError(f"an instant must be a datetime, not {type(instant).__name__}")
    if instant.utcoffset() is None:
        return ValueError(
            f"the instant {instant.isoformat()} has no zone; give it one, such as UTC"
        )
    span = "from 1970-01-01T00:00Z up to, and without, 2200-01-01T00:00Z"
    return ValueError(f"the instant {instant.isoformat()} is out of range; give one {span}")
