"""The figures of an overview: what ran in the last day, what waits, and what is due soon."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from models.operation import OperationState
from models.store import overview
from models.store.overview import HOUR, HOURS, MOST_COUNTED
from models.store.scope import Scope
from models.store.tenants.closing import next_open
from services.view import Instant, View

# What began no later after it was due was on time.
LATE = timedelta(minutes=1)


class Hour(View):
    """The operations of an hour."""

    since: Instant = Field(description="Its beginning.")
    runs: int = Field(description="How many were recorded, at most 10,000.")
    failed: int = Field(description="How many failed.")


class Figures(View):
    """How much runs, and whether it does so in time."""

    hours: tuple[Hour, ...] = Field(description="The last 24, in order.")
    runs: int = Field(description="How many operations were recorded in these.")
    are_more: bool = Field(description="Whether an hour had more runs than are counted.")
    failed: int = Field(description="How many of the last 10,000 that went wrong failed.")
    missed: int = Field(description="How many of these were missed.")
    on_time: float | None = Field(
        description="Which part of the last 2,000 of them began within a minute, 0 to 1."
    )
    running: int = Field(description="How many operations run now.")
    waiting: int = Field(description="How many operations have not started.")
    waiting_since: Instant | None = Field(description="When the oldest of these was recorded.")
    due: int = Field(description="How many actions are due within an hour, at most 1,000.")
    next_at: Instant | None = Field(description="The next of their occurrences.")


def figures_of(
    connection: sa.Connection, scope: Scope, now: datetime, coming: Sequence[Mapping[str, Any]]
) -> Figures:
    """Return the figures of a scope; `coming` are the actions that are due next."""
    began = now - HOURS * HOUR
    counts = overview.counts(connection, scope, now, LATE)
    bad = overview.troubled(connection, scope, began)
    soon = [at for row in coming if (at := next_open(row)) is not None and at <= now + HOUR]
    hours = tuple(
        Hour(
            since=began + number * HOUR,
            runs=counts[f"hour_{number}"],
            failed=_count(bad, OperationState.FAILED, number),
        )
        for number in range(HOURS)
    )
    # Calendars may leave out what is counted; of a few the plans are known.
    due = len(soon) if counts["due"] <= len(coming) else counts["due"]
    return Figures(
        hours=hours,
        runs=sum(one.runs for one in hours),
        are_more=any(one.runs == MOST_COUNTED for one in hours),
        failed=_count(bad, OperationState.FAILED),
        missed=_count(bad, OperationState.MISSED),
        on_time=counts["on_time"] / counts["ticked"] if counts["ticked"] else None,
        running=counts["running"],
        waiting=counts["waiting"],
        waiting_since=counts["waiting_since"],
        due=due,
        next_at=min((at for at in soon if at >= now), default=None),
    )


def _count(rows: Sequence[Mapping[str, Any]], state: str, hour: int | None = None) -> int:
    """Return how many are in a state, in an hour or in all."""
    its_own = [row for row in rows if row["state"] == state]
    # What ended in this second may be of the next hour.
    chosen = [row for row in its_own if hour in (None, min(row["hour"], HOURS - 1))]
    return sum(row["count"] for row in chosen)
