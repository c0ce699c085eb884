"""What an action did in a year: day by day, and how long its runs took."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import Field

from models.action.plan import Broken, Plan
from models.operation import worst
from models.sql import read_clock
from models.store import overview
from runtime.database import reading
from scheduler.occurrence import next_occurrences
from views.finding import find
from views.installation import Installation
from views.view import Instant, View

BACK = timedelta(days=333)
AHEAD = timedelta(days=31)
ONE_DAY = timedelta(days=1)
MOST_COMING = 200
MOST_RUNS = 100


class Day(View):
    """The operations of an action on one day of UTC."""

    at: Instant = Field(description="Start of the day.")
    state: str = Field(description="Their worst state.")
    counts: dict[str, int] = Field(description="How many are in each state.")


class Run(View):
    """How long one run took."""

    id: UUID
    at: Instant = Field(description="Its occurrence.")
    state: str
    seconds: float


class ActionHistory(View):
    """What an action did in the last 333 days, and what comes in the next 31."""

    now: Instant
    days: tuple[Day, ...] = Field(description="Days with operations, in order.")
    coming: dict[str, int] = Field(description="Occurrences to come by date, 200 at most.")
    runs: tuple[Run, ...] = Field(description="The last 100 that ended, the oldest first.")
    median_s: float | None = Field(description="Of these runs.")
    p95_s: float | None = Field(description="Of these runs.")
    limit_s: float | None = Field(description="Its time limit.")


def history_of(installation: Installation, name: str) -> ActionHistory:
    """Return what an action did; raises NotFound."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        now = read_clock(connection)
        counted = overview.counted(connection, [row["uid"]], now - BACK, ONE_DAY)
        runs = [Run(**one) for one in overview.last_runs(connection, row["uid"], MOST_RUNS)]
    seconds = sorted(one.seconds for one in runs)
    plan = row["plan"]
    limit = None if isinstance(plan, Broken) else plan.time_limit
    return ActionHistory(
        now=now,
        days=tuple(_days(counted)),
        coming=_coming(plan, row["uid"], now),
        runs=tuple(runs),
        median_s=_quantile(seconds, 0.5),
        p95_s=_quantile(seconds, 0.95),
        limit_s=None if limit is None else limit.total_seconds(),
    )


def _days(rows: Iterable[Mapping[str, Any]]) -> Iterable[Day]:
    days: dict[int, dict[str, int]] = {}
    for row in rows:
        days.setdefault(row["span"], {})[row["state"]] = row["count"]
    for number, counts in sorted(days.items()):
        at = datetime.fromtimestamp(number * ONE_DAY.total_seconds(), UTC)
        yield Day(at=at, state=worst(counts), counts=counts)


def _coming(plan: Plan | Broken, uid: UUID, now: datetime) -> dict[str, int]:
    if isinstance(plan, Broken) or not plan.active:
        return {}
    found = next_occurrences(plan, uid, now, MOST_COMING)
    return dict(Counter(at.date().isoformat() for at in found if at <= now + AHEAD))


def _quantile(ascending: list[float], part: float) -> float | None:
    """Return the nearest value of a sorted list; None for an empty one."""
    if not ascending:
        return None
    return ascending[min(len(ascending) - 1, int(part * len(ascending)))]
