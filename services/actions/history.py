"""What an action did in a year: day by day, and how long its runs took."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from pydantic import Field

from models.action.plan import Plan, UnreadablePlan
from models.action.schedule import ONE_SECOND
from models.operation import worst
from models.sql import read_clock
from models.store import overview
from models.store.actions.status import plan_in
from models.values.zones import instant_of, offsets_of
from runtime.database import reading
from services.finding import find
from services.installation import Installation
from services.verbs import READ, Verb
from services.view import Instant, Seconds, View

BACK = timedelta(days=333)
AHEAD = timedelta(days=31)
ONE_DAY = timedelta(days=1)
FIRST_DATE = date(1970, 1, 1)
MOST_RUNS = 100


class Day(View):
    """The operations of an action on one day of a zone."""

    at: Instant = Field(description="Start of the day.")
    date: str = Field(description="The day: `2026-11-23`.")
    state: str = Field(description="Their worst state.")
    counts: dict[str, int] = Field(description="How many are in each state.")


class Run(View):
    """How long one run took."""

    id: UUID = Field(description="Id of the operation.")
    at: Instant = Field(description="Its occurrence.")
    state: str = Field(description="The state in which it ended.")
    seconds: Seconds = Field(description="How long it ran.")


class ActionHistory(View):
    """What an action did in the last 333 days, and what comes in the next 31."""

    now: Instant = Field(description="The database's clock when it was read.")
    zone: str = Field(description="IANA zone of the days.")
    days: tuple[Day, ...] = Field(description="Days with operations, in order.")
    coming: dict[str, int] = Field(description="Number of occurrences to come, by date.")
    runs: tuple[Run, ...] = Field(description="The last 100 that ended, the oldest first.")
    median_s: Seconds | None = Field(description="Of these runs.")
    p95_s: Seconds | None = Field(description="Of these runs.")
    limit_s: Seconds | None = Field(description="Its time limit.")


@Verb("show_history", "GET /api/actions/{action=name}/history", READ)
def history_of(installation: Installation, name: str) -> ActionHistory:
    """Return what an action did in a year, day by day, and how long its last runs took.

    Raises NotFound.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        return history_in(connection, row, read_clock(connection), "UTC")


def history_in(
    connection: sa.Connection, row: Mapping[str, Any], now: datetime, zone: str
) -> ActionHistory:
    """Return what a stored action did until now, by days of a zone."""
    since = now - BACK
    offsets = offsets_of(zone, since, now)
    counted = overview.counted(connection, [row["uid"]], since, ONE_DAY, offsets)
    uid = row["uid"]
    runs = [Run(**one) for one in overview.last_runs(connection, uid, MOST_RUNS)]
    seconds = sorted(one.seconds for one in runs)
    plan = plan_in(row)
    limit = None if isinstance(plan, UnreadablePlan) else plan.time_limit
    return ActionHistory(
        now=now,
        zone=zone,
        days=tuple(_days(counted, zone)),
        coming=_coming(plan, uid, now, zone),
        runs=tuple(runs),
        median_s=_quantile(seconds, 0.5),
        p95_s=_quantile(seconds, 0.95),
        limit_s=None if limit is None else limit.total_seconds(),
    )


def _days(rows: Iterable[Mapping[str, Any]], zone: str) -> Iterable[Day]:
    days: dict[int, dict[str, int]] = {}
    for row in rows:
        days.setdefault(row["span"], {})[row["state"]] = row["count"]
    for number, counts in sorted(days.items()):
        day = FIRST_DATE + number * ONE_DAY
        yield Day(at=_midnight(day, zone), date=day.isoformat(), state=worst(counts), counts=counts)


def _coming(plan: Plan | UnreadablePlan, uid: UUID, now: datetime, zone: str) -> dict[str, int]:
    if isinstance(plan, UnreadablePlan) or not plan.active:
        return {}
    schedule, until = plan.schedule(uid), now + AHEAD
    first = now.astimezone(ZoneInfo(zone)).date()
    counts: dict[str, int] = {}
    for day in (first + number * ONE_DAY for number in range(AHEAD.days + 1)):
        # (from, to] the last second before a midnight.
        before, last = (_midnight(one, zone) - ONE_SECOND for one in (day, day + ONE_DAY))
        if count := schedule.count(max(now, before), min(until, last)):
            counts[day.isoformat()] = count
    return counts


def _midnight(day: date, zone: str) -> datetime:
    return instant_of(datetime.combine(day, time()), zone)


def _quantile(ascending: list[float], part: float) -> float | None:
    """Return the nearest value of a sorted list; None for an empty one."""
    if not ascending:
        return None
    return ascending[min(len(ascending) - 1, int(part * len(ascending)))]
