"""Draw charts as the numbers of an SVG; templates write them, without a style or a script."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from models.values.zones import in_zone
from views.actions.history import AHEAD, BACK, ActionHistory, Day
from views.overview.timeline import SPAN, Bar, Lane, Timeline
from views.words import brief
from web.dashboard.rendering import tone
from web.dashboard.texts import say

WIDTH = 1200
# The names of the lanes stand left of it.
LEFT = 160
LANE = 26
TOP = 44
LOAD = 18
LONGEST_NAME = 20
# Half of the longest label of an hour: nearer to an edge, it would be cut off.
LABEL_SPACE = 32
SPARK_WIDTH, SPARK_HEIGHT = 96, 22


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle; `tip` is read out and shown under the pointer."""

    x: float
    y: float
    width: float
    height: float
    tone: str = "none"
    tip: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a place."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class DrawnLane:
    """A lane: its name, where it leads, and its marks in the order of time."""

    name: Label
    title: str
    href: str
    marks: tuple[Mark, ...]
    coming: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A timeline as it is drawn: names up to `left`, then the marks."""

    left: int
    width: int
    height: int
    now: float
    hours: tuple[Label, ...]
    lanes: tuple[DrawnLane, ...]
    load: tuple[Mark, ...]
    outages: tuple[Mark, ...]


def timeline(shown: Timeline, zone: str) -> Drawing:
    """Return the drawing of a timeline, with hours on the clock of a zone."""
    scale = _Scale(shown.since, shown.until)
    height = TOP + LANE * len(shown.lanes) + 6
    return Drawing(
        left=LEFT,
        width=WIDTH,
        height=height,
        now=scale.x(shown.now),
        hours=tuple(_hours(shown, scale, zone)),
        lanes=tuple(
            _lane(lane, TOP + LANE * place, scale, zone) for place, lane in enumerate(shown.lanes)
        ),
        load=tuple(_load(shown, scale, zone)),
        outages=tuple(
            Mark(
                scale.x(one.since),
                TOP - 4,
                max(2.0, scale.x(one.until) - scale.x(one.since)),
                height - TOP + 4,
                tip=say(
                    "overview.outage",
                    since=in_zone(one.since, zone),
                    until=in_zone(one.until, zone),
                ),
            )
            for one in shown.outages
        ),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    since: datetime
    until: datetime

    def x(self, at: datetime) -> float:
        """Return where an instant stands, within the chart."""
        part = (at - self.since) / (self.until - self.since)
        return round(LEFT + (WIDTH - LEFT) * min(1.0, max(0.0, part)), 1)

    def width(self, span: timedelta) -> float:
        """Return the width of a span."""
        return (WIDTH - LEFT) * (span / (self.until - self.since))


def _hours(shown: Timeline, scale: _Scale, zone: str) -> Iterator[Label]:
    """Return a label at each third hour on the zone's clock; without text at an edge."""
    at = shown.since.astimezone(ZoneInfo(zone)).replace(minute=0, second=0, microsecond=0)
    while (
        at := (at.astimezone(shown.since.tzinfo) + timedelta(hours=1)).astimezone(at.tzinfo)
    ) <= shown.until:
        if at.hour % 3 == 0:
            x = scale.x(at)
            day = at.strftime("%a ") if at.hour == 0 else ""
            fits = LEFT + LABEL_SPACE <= x <= WIDTH - LABEL_SPACE
            yield Label(x, 12, f"{day}{at:%H:%M}" if fits else "")


def _lane(lane: Lane, y: float, scale: _Scale, zone: str) -> DrawnLane:
    name = (
        lane.action if len(lane.action) <= LONGEST_NAME else f"{lane.action[: LONGEST_NAME - 1]}…"
    )
    href = f"/apps/{lane.app}/actions/{lane.uid}"
    return DrawnLane(
        name=Label(LEFT - 12, y + 16, name),
        title=f"{lane.app} · {lane.action}",
        href=href,
        marks=tuple(_bar(bar, lane, y, scale, zone) for bar in lane.bars),
        coming=tuple(
            Mark(scale.x(at), y + 8, 1, 9, tip=f"{lane.action}: {in_zone(at, zone)}")
            for at in lane.coming
        ),
    )


def _bar(bar: Bar, lane: Lane, y: float, scale: _Scale, zone: str) -> Mark:
    counts = ", ".join(
        f"{count} {say(f'state.{state}')}" for state, count in sorted(bar.counts.items())
    )
    href = (
        f"/operations/{bar.operation_id}"
        if bar.operation_id
        else f"/operations?app={lane.app}&action={lane.uid}"
    )
    return Mark(
        x=scale.x(bar.at),
        y=y + 4,
        width=round(max(3.0, scale.width(SPAN) - 1), 1),
        height=17,
        tone=tone(bar.state),
        tip=f"{lane.action}, {in_zone(bar.at, zone)}: {counts}",
        href=href,
    )


def _load(shown: Timeline, scale: _Scale, zone: str) -> Iterator[Mark]:
    most = max((one.busiest for one in shown.load), default=0)
    for one in shown.load:
        height = round(max(1.0, LOAD * one.busiest / most), 1)
        tip = say(
            "overview.load", at=in_zone(one.at, zone), recorded=one.recorded, busiest=one.busiest
        )
        width = round(max(2.0, scale.width(SPAN) - 1), 1)
        yield Mark(scale.x(one.at), 18 + LOAD - height, width, height, tip=tip)


def spark(seconds: Sequence[float]) -> str:
    """Return the points of a line through durations, the oldest first; empty for less than two."""
    if len(seconds) < 2:
        return ""
    most = max(seconds) or 1.0
    step = SPARK_WIDTH / (len(seconds) - 1)
    high = SPARK_HEIGHT - 2
    return " ".join(
        f"{place * step:.1f},{1 + high * (1 - one / most):.1f}" for place, one in enumerate(seconds)
    )


CELL = 13
WEEK_ROWS = 7
BARS_WIDTH, BARS_HEIGHT = 720, 130
# The names of the lines stand right of the bars.
RIGHT = 110


@dataclass(frozen=True, slots=True)
class Calendar:
    """A year as weeks of seven days, Monday first."""

    width: int
    height: int
    days: tuple[Mark, ...]
    months: tuple[Label, ...]
    weekdays: tuple[Label, ...]


def calendar(history: ActionHistory, page: str) -> Calendar:
    """Return the drawing of a year; a day leads to the runs of that day at `page`."""
    known = {one.date: one for one in history.days}
    today = history.now.astimezone(ZoneInfo(history.zone)).date()
    first = today - BACK
    monday = first - timedelta(days=first.weekday())
    last = today + AHEAD
    days, months = [], []
    at, month = monday, 0
    while at <= last:
        week, row = divmod((at - monday).days, WEEK_ROWS)
        x, y = 30 + week * CELL, 16 + row * CELL
        if row == 0 and at.month != month:
            month = at.month
            months.append(Label(x, 10, f"{at:%b}"))
        days.append(_day(at, known.get(at.isoformat()), history, (x, y), page))
        at += timedelta(days=1)
    weekdays = tuple(
        Label(24, 26 + row * CELL, f"{monday + timedelta(days=row):%a}") for row in (0, 2, 4, 6)
    )
    weeks = (last - monday).days // WEEK_ROWS + 1
    return Calendar(30 + weeks * CELL, 18 + WEEK_ROWS * CELL, tuple(days), tuple(months), weekdays)


def _day(
    at: date, known: Day | None, history: ActionHistory, place: tuple[int, int], page: str
) -> Mark:
    x, y = place
    size = CELL - 2
    if known is not None:
        counts = ", ".join(
            f"{count} {say(f'state.{state}')}" for state, count in sorted(known.counts.items())
        )
        until = at + timedelta(days=1)
        href = f"{page}&since={at}T00:00:00&until={until}T00:00:00"
        return Mark(x, y, size, size, tone(known.state), f"{at:%a} {at}: {counts}", href)
    coming = history.coming.get(at.isoformat(), 0)
    if coming:
        tip = say("action.coming_on", day=f"{at:%a} {at}", count=coming)
        return Mark(x + 1, y + 1, size - 2, size - 2, "coming", tip)
    return Mark(x, y, size, size, "none", say("action.nothing_on", day=f"{at:%a} {at}"))


@dataclass(frozen=True, slots=True)
class Durations:
    """Bars of how long runs took, and the heights of the lines to compare them with."""

    width: int
    height: int
    bars: tuple[Mark, ...]
    lines: tuple[tuple[float, str], ...]


def durations(history: ActionHistory, zone: str) -> Durations | None:
    """Return the drawing of the last runs' durations; None without a run."""
    if not history.runs:
        return None
    most = max(1e-3, *(one.seconds for one in history.runs))
    if history.limit_s is not None and history.limit_s < 3 * most:
        most = max(most, history.limit_s)
    high = BARS_HEIGHT - 14
    step = min(24.0, (BARS_WIDTH - RIGHT) / len(history.runs))

    def y(seconds: float) -> float:
        return round(12 + high * (1 - seconds / most), 1)

    marks = tuple(
        Mark(
            x=round(place * step, 1),
            y=min(y(one.seconds), BARS_HEIGHT - 4),
            width=round(max(2.0, step - 2), 1),
            height=round(max(2.0, BARS_HEIGHT - 2 - y(one.seconds)), 1),
            tone=tone(one.state),
            tip=f"{in_zone(one.at, zone)}: {say(f'state.{one.state}')}, {brief(one.seconds)}",
            href=f"/operations/{one.id}",
        )
        for place, one in enumerate(history.runs)
    )
    named = (
        ("median", history.median_s),
        ("p95", history.p95_s),
        ("limit", history.limit_s),
    )
    lines: list[tuple[float, str]] = []
    for name, seconds in named:
        # If two lines nearly meet, only one of them is named.
        if (
            seconds is not None
            and seconds <= most
            and all(abs(y(seconds) - at) > 12 for at, _ in lines)
        ):
            lines.append((y(seconds), say(f"action.{name}", span=brief(seconds))))
    return Durations(BARS_WIDTH, BARS_HEIGHT, marks, tuple(lines))
