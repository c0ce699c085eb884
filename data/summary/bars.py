"""Small column charts as table cells, which mail programs draw without an image."""

from collections.abc import Sequence
from dataclasses import dataclass

from data.summary.history import Point
from data.summary.numbers import short_number

HEIGHT_PX = 72
# A chart of a single value would be one wide block.
LEAST_SLOTS = 6
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Bar:
    """One value: its height in pixels above or below the line, and its number, if there is room."""

    height: int
    is_below: bool
    number: str
    is_last: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """The bars of a trend, the last one set off; `empty` slots stand before them.

    `first` and `last` are the days below the ends, with their numbers if the bars have none.
    """

    bars: tuple[Bar, ...]
    empty: int
    first: str
    last: str

    @property
    def has_below(self) -> bool:
        """Whether a value is negative."""
        return any(bar.is_below for bar in self.bars)


def chart_of(points: Sequence[Point]) -> Chart:
    """Return the chart of some points, in the zone of their instants."""
    values = [float(point.value) for point in points]
    # Drawn relative to the largest, so that no number is too large.
    largest = max(map(abs, values)) or 1.0
    are_few = len(points) <= LEAST_SLOTS
    bars = tuple(
        Bar(
            height=max(1, round(abs(value / largest) * HEIGHT_PX)),
            is_below=value < 0,
            number=short_number(value) if are_few else "",
            is_last=n == len(values) - 1,
        )
        for n, value in enumerate(values)
    )
    first, last = (_day(point, has_number=not are_few) for point in (points[0], points[-1]))
    return Chart(bars, max(0, LEAST_SLOTS - len(bars)), first, last)


def _day(point: Point, *, has_number: bool) -> str:
    # Not by strftime, whose months follow the process's locale.
    day = f"{point.at.day} {_MONTHS[point.at.month - 1]}"
    return f"{day}: {short_number(point.value)}" if has_number else day
