"""Draw the days of a year on which an action ran, as weeks of seven days, Monday first."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from models.operation import TROUBLED
from services.actions.page import YEAR, Year
from web.dashboard.drawing.bars import counted
from web.dashboard.rendering import tone

# Units from one day to the next; the drawing is as wide as its place.
STEP = 10
# The newest days on which a run did not go well lead to their runs.
MOST_LINKS = 30


@dataclass(frozen=True, slots=True)
class Trouble:
    """A day on which a run did not go well: its outline, its look, its runs and their address."""

    outline: str
    tone: str
    tip: str
    href: str


@dataclass(frozen=True, slots=True)
class DrawnYear:
    """The outlines of all days by their look, those in trouble, and where months begin."""

    days: dict[str, str]
    troubles: tuple[Trouble, ...]
    months: tuple[tuple[float, str], ...]
    width: int
    summary: str


def drawn_year(year: Year, page: str) -> DrawnYear:
    """Return the drawing of a year; a day in trouble leads to its runs at `page`."""
    last = year.now.astimezone(ZoneInfo(year.zone)).date()
    first = last - YEAR
    monday = first - timedelta(days=first.weekday())
    days: dict[str, str] = {}
    for at, known in year.days.items():
        look = tone(known.state)
        days[look] = days.get(look, "") + _outline(at, monday)
    troubled = sorted(at for at, known in year.days.items() if known.state in TROUBLED)
    weeks = (last - monday).days // 7 + 1
    return DrawnYear(
        days=days,
        troubles=tuple(_trouble(at, monday, year, page) for at in troubled[-MOST_LINKS:]),
        months=tuple(_months(monday, weeks)),
        width=weeks * STEP,
        summary=counted(Counter(known.state for known in year.days.values())),
    )


def _outline(at: date, monday: date) -> str:
    week, row = divmod((at - monday).days, 7)
    return f"M{STEP * week} {STEP * row}h9v9h-9z"


def _trouble(at: date, monday: date, year: Year, page: str) -> Trouble:
    known = year.days[at]
    return Trouble(
        outline=_outline(at, monday),
        tone=tone(known.state),
        tip=f"{at:%a} {at}: {counted(known.counts)}",
        href=f"{page}&since={at}T00:00:00&until={at + timedelta(days=1)}T00:00:00",
    )


def _months(monday: date, weeks: int) -> Iterator[tuple[float, str]]:
    """Yield the place of each month's first week, in percent, and its name."""
    for column in range(weeks):
        week = monday + timedelta(weeks=column)
        if week.day <= 7:
            yield round(100 * column / weeks, 2), f"{week:%b}"
