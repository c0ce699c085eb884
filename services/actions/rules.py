"""The rules of actions in words."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from cron import ClockChange, CronSchedule, clock_changes
from models.action.exceptions import Closed
from models.action.plan import Plan, UnreadablePlan
from models.action.recurrence import RecurrenceModel
from models.action.rules import CronModel, cron_schedule
from models.values.zones import in_zone

if TYPE_CHECKING:
    from croniter import croniter

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
    differing = croniter_comparison(rule, change)
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


# Both are asked for the occurrences from this long before the change until this long after it.
AROUND = timedelta(hours=3)
_SECOND = timedelta(seconds=1)


class Differing(NamedTuple):
    """The instants, in order, at which only croniter or only Minutebook runs a rule."""

    only_croniter: tuple[datetime, ...] = ()
    only_ours: tuple[datetime, ...] = ()


@lru_cache(maxsize=10_000)
def croniter_comparison(rule: str, change: ClockChange) -> Differing:
    """Return where croniter and our kernel differ around a clock change.

    They do not differ on a rule that croniter refuses.
    """
    since, until = change.at - AROUND - _SECOND, change.at + AROUND
    ours = set(CronSchedule(rule, change.zone).between(since, until))
    theirs = _of_croniter(rule, change.zone, since, until)
    if theirs is None:
        return Differing()
    return Differing(tuple(sorted(theirs - ours)), tuple(sorted(ours - theirs)))


def _of_croniter(rule: str, zone: str, since: datetime, until: datetime) -> set[datetime] | None:
    """Return croniter's occurrences in (since, until], in UTC; None for a rule that it refuses."""
    from croniter import CroniterError, croniter

    try:
        # With what it calls a bug, it reads the two fields of days as Debian's cron does.
        asked = croniter(rule, since.astimezone(ZoneInfo(zone)), implement_cron_bug=True)
        return set(_until(asked, until))
    except CroniterError:
        return None


def _until(asked: "croniter", until: datetime) -> Iterator[datetime]:
    while (at := asked.get_next(datetime).astimezone(UTC)) <= until:
        yield at
