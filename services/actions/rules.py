"""The rules of actions in words."""

from datetime import datetime, timedelta

from cron import ClockChange, clock_changes
from models.action.exceptions import Closed
from models.action.plan import Plan, UnreadablePlan
from models.action.recurrence import RecurrenceModel
from models.action.rules import CronModel, cron_schedule
from models.values.zones import in_zone
from services.second_opinion import second_opinion

# How far ahead clock changes are shown.
YEAR = timedelta(days=366)
# Exceptions that are named in a rule's words.
MOST_NAMED = 3


def zone_of(plan: Plan | UnreadablePlan, zone: str) -> str:
    """Return the zone in which an action's instants are shown: its first rule's, or `zone`."""
    if isinstance(plan, UnreadablePlan):
        return zone
    return next((rule.zone for rule in plan.rules if rule.zone is not None), zone)


def rules_in_words(plan: Plan, zone: str) -> tuple[str, ...]:
    """Return a plan's rules in words; instants without a zone of their own are shown in `zone`."""
    return tuple(
        rule.words(zone) + rule.jitter_words + _exceptions(rule.closed) for rule in plan.rules
    )


def _exceptions(closed: Closed | None) -> str:
    """Return what a rule leaves out: `, except sat, sun; 12-25 of each year and 7 more`."""
    names = () if closed is None else closed.names
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f", except {'; '.join(names[:MOST_NAMED])}{more}" if names else ""


def daylight_notes(plan: Plan, since: datetime, until: datetime) -> tuple[str, ...]:
    """Return the effects of the clock changes in (since, until] on the rules of a plan."""
    found: list[str] = []
    for rule in plan.rules:
        if isinstance(rule, CronModel):
            schedule = cron_schedule(rule.cron_rule, rule.timezone)
            changes = clock_changes(schedule, since, until)
            found += [_moved(one) + _other_engine(schedule.rule, one) for one in changes]
        if isinstance(rule, RecurrenceModel):
            found += map(_moved, clock_changes(rule.wall_clock, since, until))
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
