"""What an action did in a year, and what comes, day by day."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from models.action.plan import Plan, UnreadablePlan
from models.action.schedule import ONE_SECOND
from models.operation import worst
from models.store import overview
from models.store.actions.status import plan_in
from models.values.zones import instant_of, offsets_of

BACK = timedelta(days=333)
AHEAD = timedelta(days=31)
ONE_DAY = timedelta(days=1)
FIRST_DATE = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Day:
    """The operations of an action on one day: their worst state, and how many are in each."""

    state: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ActionHistory:
    """The days of a zone with operations, and the number of occurrences on days to come."""

    now: datetime
    zone: str
    days: Mapping[date, Day]
    coming: Mapping[date, int]


def history_in(
    connection: sa.Connection, row: Mapping[str, Any], now: datetime, zone: str
) -> ActionHistory:
    """Return what a stored action did until now, by days of a zone, and what is to come."""
    since, uid = now - BACK, row["uid"]
    offsets = offsets_of(zone, since, now)
    counted = overview.counted(connection, [uid], since, ONE_DAY, offsets)
    return ActionHistory(now, zone, _days(counted), _coming(plan_in(row), uid, now, zone))


def _days(rows: Iterable[Mapping[str, Any]]) -> dict[date, Day]:
    days: dict[date, dict[str, int]] = {}
    for row in rows:
        days.setdefault(FIRST_DATE + row["span"] * ONE_DAY, {})[row["state"]] = row["count"]
    return {day: Day(worst(counts), counts) for day, counts in days.items()}


def _coming(plan: Plan | UnreadablePlan, uid: UUID, now: datetime, zone: str) -> dict[date, int]:
    if isinstance(plan, UnreadablePlan) or not plan.active:
        return {}
    schedule, until = plan.schedule(uid), now + AHEAD
    first = now.astimezone(ZoneInfo(zone)).date()
    counts: dict[date, int] = {}
    for day in (first + number * ONE_DAY for number in range(AHEAD.days + 1)):
        # (from, to] the last second before a midnight.
        before, last = (_midnight(one, zone) - ONE_SECOND for one in (day, day + ONE_DAY))
        if count := schedule.count(max(now, before), min(until, last)):
            counts[day] = count
    return counts


def _midnight(day: date, zone: str) -> datetime:
    return instant_of(datetime.combine(day, time()), zone)
