"""The minutes on a wall clock: the days that match, and the times of each of them."""

from cron.days import Days

MINUTES_A_DAY = 1440


class Minutes:
    """The local minutes that match a rule, counted from 1969-01-01 00:00 on the wall clock.

    `text` is the rule, `times` holds one flag for each minute of a day that matches.
    `is_wildcard`: the rule follows the wall clock through gaps and repeats.
    """

    __slots__ = (
        "_days",
        "_first_time",
        "_last_time",
        "_times_a_day",
        "is_wildcard",
        "text",
        "times",
    )

    def __init__(self, text: str, times: bytes, is_wildcard: bool) -> None:
        self.text, self.times, self.is_wildcard = text, times, is_wildcard
        self._first_time, self._last_time = times.find(1), times.rfind(1)
        self._times_a_day = times.count(1)
        self._days: Days | None = None

    def find_days(self) -> Days:
        """Return the days that match; asked at their first use."""
        raise NotImplementedError

    def at_or_after(self, minute: int) -> int:
        """Return the first matching minute from `minute` on, or a number ≥ NEVER."""
        days = self._days or self._found()
        day = minute // MINUTES_A_DAY
        time = minute - day * MINUTES_A_DAY
        if time > self._last_time:
            return days.at_or_after(day + 1) * MINUTES_A_DAY + self._first_time
        found = days.at_or_after(day)
        return found * MINUTES_A_DAY + self.times.find(1, time if found == day else 0)

    def at_or_before(self, minute: int) -> int:
        """Return the last matching minute up to `minute`, or a number ≤ -NEVER."""
        days = self._days or self._found()
        day = minute // MINUTES_A_DAY
        time = minute - day * MINUTES_A_DAY
        if time < self._first_time:
            return days.at_or_before(day - 1) * MINUTES_A_DAY + self._last_time
        found = days.at_or_before(day)
        end = time + 1 if found == day else MINUTES_A_DAY
        return found * MINUTES_A_DAY + self.times.rfind(1, 0, end)

    def count_before(self, minute: int) -> int:
        """Return how many minutes match before `minute`, without listing them."""
        days = self._days or self._found()
        day, time = divmod(minute, MINUTES_A_DAY)
        whole = days.count_before(day) * self._times_a_day
        return whole + (self.times.count(1, 0, time) if days.matches(day) else 0)

    def matches_in(self, first: int, end: int) -> bool:
        """Return whether a minute in [first, end) matches."""
        return self.at_or_after(first) < end

    def _found(self) -> Days:
        self._days = days = self.find_days()
        return days
