"""Instants, durations and rules in words."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from cron import ClockChange, CronSchedule, SolarEvent, clock_changes, in_words
from models.action.plan import (
    Broken,
    CronTrigger,
    DueDateTrigger,
    EventTrigger,
    IntervalTrigger,
    Plan,
    Repeating,
    SolarTrigger,
    Trigger,
)
from models.values import instant_or_dash
from models.values.durations import lasting
from views.second_opinion import second_opinion

# How far ahead clock changes are shown.
YEAR = timedelta(days=366)
# Exceptions that are named in a rule's words.
MOST_NAMED = 3
SOLAR: Mapping[SolarEvent, str] = {
    SolarEvent.DAWN_ASTRONOMICAL: "astronomical dawn",
    SolarEvent.DAWN_NAUTICAL: "nautical dawn",
    SolarEvent.DAWN_CIVIL: "civil dawn",
    SolarEvent.SUNRISE: "sunrise",
    SolarEvent.SOLAR_NOON: "solar noon",
    SolarEvent.SUNSET: "sunset",
    SolarEvent.DUSK_CIVIL: "civil dusk",
    SolarEvent.DUSK_NAUTICAL: "nautical dusk",
    SolarEvent.DUSK_ASTRONOMICAL: "astronomical dusk",
}


def instant(at: datetime | None) -> str:
    """Return an instant in UTC to the second, `-` for none."""
    return instant_or_dash(at)


def in_zone(at: datetime, zone: str) -> str:
    """Return an instant in a zone: `Mon 2026-11-23 07:00 +01:00`."""
    local = at.astimezone(ZoneInfo(zone))
    clock = "%H:%M:%S" if local.second else "%H:%M"
    offset = local.strftime("%z")
    return f"{local.strftime(f'%a %Y-%m-%d {clock}')} {offset[:3]}:{offset[3:]}"


def both_clocks(at: datetime | None, zone: str) -> str:
    """Return an instant in UTC and in a zone, `-` for none."""
    if at is None:
        return "-"
    return instant(at) if zone == "UTC" else f"{instant(at)}  ({in_zone(at, zone)} {zone})"


def brief(seconds: float) -> str:
    """Return a duration, to the millisecond if it is short."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else lasting(timedelta(seconds=seconds))


def span_in_words(span: timedelta) -> str:
    """Return a span in words: `1 hour 30 minutes`."""
    hours, seconds = divmod(span.seconds, 3600)
    counts = {"day": span.days, "hour": hours, "minute": seconds // 60, "second": seconds % 60}
    words = [f"{n} {unit}{'s' if n > 1 else ''}" for unit, n in counts.items() if n]
    return " ".join(words)


def _as_rhythm(every: timedelta) -> str:
    """Return an interval as it follows "every": `hour`, `2 hours`, `1 hour 30 minutes`."""
    words = span_in_words(every)
    return words.removeprefix("1 ") if words.count(" ") == 1 else words


def zone_of(plan: Plan | Broken, zone: str) -> str:
    """Return the zone in which an action's instants are shown: its first rule's, or `zone`."""
    if isinstance(plan, Broken):
        return zone
    zones = [
        trigger.zone
        for trigger in plan.triggers
        if isinstance(trigger, CronTrigger | DueDateTrigger | EventTrigger) and trigger.zone
    ]
    return zones[0] if zones else zone


def rules_in_words(plan: Plan, zone: str) -> tuple[str, ...]:
    """Return a plan's triggers in words."""
    return tuple(_trigger(one, zone) + _exceptions(one) for one in plan.triggers)


def _exceptions(trigger: Trigger) -> str:
    """Return what a rule leaves out: `, except sat, sun; 12-25 of each year and 7 more`."""
    closed = trigger.closed if isinstance(trigger, Repeating) else None
    names = () if closed is None else closed.names
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f", except {'; '.join(names[:MOST_NAMED])}{more}" if names else ""


def _trigger(trigger: Trigger, zone: str) -> str:
    match trigger:
        case CronTrigger():
            return f"{in_words(trigger.rule)} ({trigger.rule}), {trigger.zone}"
        case DueDateTrigger():
            shown_in = trigger.zone or zone
            return f"once, on {in_zone(trigger.due_at, shown_in)}, {shown_in}"
        case IntervalTrigger():
            start = instant(trigger.starting_at)
            return f"every {_as_rhythm(trigger.every)}, counted from {start}"
        case SolarTrigger():
            return f"at {SOLAR[trigger.event]} ({_place(trigger)})"
        case EventTrigger():
            return _event(trigger)


def _place(trigger: SolarTrigger) -> str:
    """Return a place: `48.85° N, 2.35° E`."""
    north, east = "N" if trigger.lat >= 0 else "S", "E" if trigger.lon >= 0 else "W"
    return f"{abs(trigger.lat):g}° {north}, {abs(trigger.lon):g}° {east}"


def _event(trigger: EventTrigger) -> str:
    """Return an event and its delay in words: `7 days 30 seconds after instance.user.last_seen`."""
    delay, event = trigger.after, trigger.event
    if trigger.watched is not None:
        event = f'"{trigger.watched}" ends as {" or ".join(trigger.ends)}'
    if not delay.months and not delay.exact:
        return f"on {event}" if trigger.watched is None else f"when {event}"
    counts = {"year": delay.months // 12, "month": delay.months % 12}
    parts = [f"{n} {unit}{'s' if n > 1 else ''}" for unit, n in counts.items() if n]
    parts += [span_in_words(delay.exact)] if delay.exact else []
    zone = f", {trigger.zone}" if delay.months else ""
    return f"{' '.join(parts)} after {event}{zone}"


def daylight_notes(plan: Plan, since: datetime, until: datetime) -> tuple[str, ...]:
    """Return the effects of the clock changes in (since, until] on a plan's rules."""
    found: list[str] = []
    for trigger in plan.triggers:
        if isinstance(trigger, CronTrigger):
            schedule = CronSchedule(trigger.rule, trigger.zone)
            changes = clock_changes(schedule, since, until)
            found += [_moved(one) + _other_engine(trigger.rule, one) for one in changes]
    return tuple(found)


def _other_engine(rule: str, change: ClockChange) -> str:
    """Return where croniter's answer differs around a clock change, empty where it does not."""
    differing = second_opinion(rule, change)
    also = "also " if change.runs_at else ""
    verbs = zip((f"would {also}run", "would not run"), differing, strict=True)
    said = [f"{verb} at {_first(them, change.zone)}" for verb, them in verbs if them]
    return f"; croniter {' and '.join(said)}" if said else ""


def _first(instants: tuple[datetime, ...], zone: str) -> str:
    more = f", and {len(instants) - 1} more" if len(instants) > 1 else ""
    return in_zone(instants[0], zone) + more


def _moved(change: ClockChange) -> str:
    if change.is_gap:
        runs = [in_zone(at, change.zone) for at in change.runs_at]
        effect = f"runs at {runs[0]}" if runs else "does not run"
        return f"{change.named} does not exist in {change.zone}: {effect}"
    both = any(at >= change.at for at in change.runs_at)
    effect = "runs both times" if both else "runs the first time"
    return f"{change.named} comes twice in {change.zone}: {effect}"
