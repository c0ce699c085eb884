"""Draw the days of a year on which an action ran, as weeks of seven days, Monday first."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from services.actions.page import YEAR, Day, Year
from web.dashboard.drawing import Label, Mark
from web.dashboard.drawing.bars import counted
from web.dashboard.rendering import tone

CELL = 1.05
TOP = 1.3
HEIGHT = round(TOP + 7 * CELL, 2)


@dataclass(frozen=True, slots=True)
class DrawnYear:
    """The days with runs, each with the address of these; the names of days stand beside them."""

    days: tuple[Mark, ...]
    months: tuple[Label, ...]
    weekdays: tuple[Label, ...]
    height: float = HEIGHT


def drawn_year(year: Year, page: str) -> DrawnYear:
    """Return the drawing of a year; a day leads to its runs at `page`."""
    last = year.now.astimezone(ZoneInfo(year.zone)).date()
    first = last - YEAR
    monday = first - timedelta(days=first.weekday())
    width = 100 / ((last - monday).days // 7 + 1)
    return DrawnYear(
        days=tuple(
            _mark(at, year.days[at], (at - monday).days, width, page) for at in sorted(year.days)
        ),
        months=tuple(_months(monday, last, width)),
        weekdays=tuple(
            Label(100, round(TOP + row * CELL + 0.85, 2), f"{monday + timedelta(days=row):%a}")
            for row in (0, 2, 4, 6)
        ),
    )


def _mark(at: date, known: Day, place: int, width: float, page: str) -> Mark:
    week, row = divmod(place, 7)
    return Mark(
        x=round(week * width, 2),
        y=round(TOP + row * CELL, 2),
        width=round(width * 0.86, 2),
        height=round(CELL * 0.86, 2),
        tone=tone(known.state),
        tip=f"{at:%a} {at}: {counted(known.counts)}",
        href=f"{page}&since={at}T00:00:00&until={at + timedelta(days=1)}T00:00:00",
    )


def _months(monday: date, last: date, width: float) -> Iterator[Label]:
    """Yield the name of each month at its first week."""
    weeks = (last - monday).days // 7 + 1
    for column in range(weeks):
        week = monday + timedelta(weeks=column)
        if week.day <= 7:
            yield Label(round(column * width, 2), 0.9, f"{week:%b}")
