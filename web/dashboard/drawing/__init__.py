"""Draw charts as the numbers of an SVG; templates write them, without a style or a script."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from models.values.zones import in_zone
from services.overview.timeline import Bar, Lane, Outage, Timeline
from web.dashboard.drawing.bars import counted
from web.dashboard.rendering import tone
from web.dashboard.texts import say

# Charts are not scaled: along the time they are as wide as the page, in percent; all else is in
# `rem`, so that their words are as large as the page's.
LANE = 1.75
# Half of the longest label of an hour, in percent: nearer to an edge, it would be cut off.
LABEL_SPACE = 4.0
LABELS = 12
HOUR = timedelta(hours=1)
STEPS = (HOUR / 4, HOUR / 2, HOUR, 2 * HOUR, 3 * HOUR)


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle in `rem`, along the time in percent; `tip` is read out and shown as a hint."""

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
    """A lane: its action, where it leads, and its marks in the order of time."""

    name: str
    app: str
    href: str
    marks: tuple[Mark, ...]
    coming: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A timeline as it is drawn: lanes, each as high, and what stands in all of them."""

    now: float
    hours: tuple[Label, ...]
    lanes: tuple[DrawnLane, ...]
    outages: tuple[Mark, ...]


def timeline(shown: Timeline, zone: str) -> Drawing:
    """Return the drawing of a timeline, with hours on the clock of a zone."""
    scale = _Scale(shown.since, shown.until, timedelta(seconds=shown.span_s))
    return Drawing(
        now=scale.x(shown.now),
        hours=tuple(_hours(shown, scale, zone)),
        lanes=tuple(_lane(lane, scale, zone) for lane in shown.lanes),
        outages=tuple(_outage(one, scale, zone) for one in shown.outages),
    )


def _outage(one: Outage, scale: "_Scale", zone: str) -> Mark:
    x = scale.x(one.since)
    since, until = in_zone(one.since, zone), in_zone(one.until, zone)
    tip = say("overview.outage", since=since, until=until)
    return Mark(x, 0, max(0.2, scale.x(one.until) - x), LANE, tip=tip)


@dataclass(frozen=True, slots=True)
class _Scale:
    since: datetime
    until: datetime
    span: timedelta

    def x(self, at: datetime) -> float:
        """Return where an instant stands, in percent."""
        part = (at - self.since) / (self.until - self.since)
        return round(100 * min(1.0, max(0.0, part)), 2)

    @property
    def bar(self) -> float:
        """The width of a bar: two thirds of its span, so that bars stand apart."""
        return round(67 * (self.span / (self.until - self.since)), 2)


def _hours(shown: Timeline, scale: _Scale, zone: str) -> Iterator[Label]:
    """Yield a label at whole hours of the zone's clock, or parts; near an edge without a text."""
    step = next(one for one in STEPS if (shown.until - shown.since) / one <= LABELS)
    at = shown.since.astimezone(ZoneInfo(zone)).replace(minute=0, second=0, microsecond=0)
    at = at.astimezone(UTC)
    while (at := at + min(step, HOUR)) <= shown.until:
        local = at.astimezone(ZoneInfo(zone))
        if at > shown.since and not (local.hour * 60 + local.minute) % (step.seconds // 60):
            x = scale.x(at)
            text = f"{local:%H:%M}" if local.hour or local.minute else f"{local:%a %H:%M}"
            yield Label(x, 0.9, text if LABEL_SPACE <= x <= 100 - LABEL_SPACE else "")


def _lane(lane: Lane, scale: _Scale, zone: str) -> DrawnLane:
    return DrawnLane(
        name=lane.action,
        app=lane.app,
        href=f"/apps/{lane.app}/actions/{lane.uid}",
        marks=tuple(_bar(bar, lane, scale, zone) for bar in lane.bars),
        coming=tuple(
            Mark(scale.x(at), 0.55, 0, 0.6, tip=f"{lane.action}: {in_zone(at, zone)}")
            for at in lane.coming
        ),
    )


def _bar(bar: Bar, lane: Lane, scale: _Scale, zone: str) -> Mark:
    href = (
        f"/operations/{bar.operation_id}"
        if bar.operation_id
        else f"/operations?app={lane.app}&action={lane.uid}"
    )
    return Mark(
        x=scale.x(bar.at),
        y=0.3,
        width=scale.bar,
        height=1.15,
        tone=tone(bar.state),
        tip=f"{lane.action}, {in_zone(bar.at, zone)}: {counted(bar.counts)}",
        href=href,
    )
