"""The timeline of an overview: what the actions that matter did, and what is to come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.action.plan import UnreadablePlan
from models.action.schedule import ONE_SECOND
from models.operation import worst
from models.store import overview
from models.store.actions.status import plan_in
from models.stored import uuid_in
from models.values.zones import EPOCH
from scheduler.occurrence import next_occurrences
from services.view import Instant, Seconds, View

# Lanes of a timeline.
MOST_LANES = 12
# How far it reaches back, and the span of a bar: the first that is as old as the actions. It
# reaches half as far ahead.
SCALES = (
    (timedelta(hours=1), timedelta(minutes=1)),
    (timedelta(hours=3), timedelta(minutes=2)),
    (timedelta(hours=6), timedelta(minutes=5)),
    (timedelta(hours=12), timedelta(minutes=10)),
    (timedelta(days=1), timedelta(minutes=15)),
)


class Bar(View):
    """The operations of an action in a span."""

    at: Instant = Field(description="Start of the span.")
    state: str = Field(description="Their worst state.")
    counts: dict[str, int] = Field(description="How many are in each state.")
    operation_id: UUID | None = Field(description="The operation, if it is one alone.")


class Lane(View):
    """An action on the timeline."""

    app: str = Field(description="Its small app.")
    action: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Uid of the action.")
    bars: tuple[Bar, ...] = Field(description="What it ran, in spans of `span_s`.")
    coming: tuple[Instant, ...] = Field(description="To come: its first of each span.")


class Outage(View):
    """A time in which no daemon ticked."""

    since: Instant = Field(description="The last tick before it.")
    until: Instant = Field(description="The first tick after it.")


class Timeline(View):
    """The last day or less, and half as much to come."""

    since: Instant = Field(description="Its beginning.")
    now: Instant = Field(description="The database's clock when it was read.")
    until: Instant = Field(description="Its end.")
    span_s: Seconds = Field(description="Seconds of the span of a bar.")
    lanes: tuple[Lane, ...] = Field(description="One for each action.")
    outages: tuple[Outage, ...] = Field(description="When no daemon ticked.")


def timeline_of(
    connection: sa.Connection,
    rows: Sequence[Mapping[str, Any]],
    now: datetime,
    apps: Mapping[int, str],
    tick: timedelta,
) -> Timeline:
    """Return the timeline of some listed actions, in their order, since the oldest is stored."""
    oldest = min((row["created_at"] for row in rows), default=now)
    back, span = next((one for one in SCALES if now - oldest <= one[0]), SCALES[-1])
    since, until = now - back, now + back / 2
    counted = overview.counted(connection, [row["uid"] for row in rows], since, span)
    bars = _bars(counted, span)
    return Timeline(
        since=since,
        now=now,
        until=until,
        span_s=span.total_seconds(),
        lanes=tuple(
            Lane(
                app=apps.get(row["small_app_id"], ""),
                action=row["name"],
                uid=row["uid"],
                bars=bars.get(row["uid"], ()),
                coming=tuple(_coming(row, now, until, span)),
            )
            for row in rows
        ),
        outages=tuple(_outages(overview.ticked(connection, since), now, tick)),
    )


def _bars(rows: Iterable[Mapping[str, Any]], span: timedelta) -> dict[UUID, tuple[Bar, ...]]:
    spans: dict[tuple[UUID, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        spans.setdefault((row["action_uid"], row["span"]), []).append(row)
    made: dict[UUID, tuple[Bar, ...]] = {}
    for (uid, number), some in sorted(spans.items()):
        counts = {row["state"]: row["count"] for row in some}
        is_one = sum(counts.values()) == 1
        bar = Bar(
            at=EPOCH + number * span,
            state=worst(counts),
            counts=counts,
            operation_id=uuid_in(some[0]["id"]) if is_one else None,
        )
        made[uid] = (*made.get(uid, ()), bar)
    return made


def _coming(
    row: Mapping[str, Any], since: datetime, until: datetime, span: timedelta
) -> Iterator[datetime]:
    """Yield the first occurrence in (since, until] of each span, ascending."""
    plan = plan_in(row)
    if isinstance(plan, UnreadablePlan) or not plan.active:
        return
    while (found := next_occurrences(plan, row["uid"], since, 1)) and found[0] <= until:
        yield found[0]
        since = EPOCH + ((found[0] - EPOCH) // span + 1) * span - ONE_SECOND


def _outages(ticked: Sequence[datetime], now: datetime, tick: timedelta) -> Iterable[Outage]:
    """Return the times of more than two ticks between two ticks, or after the last."""
    for one, next_one in pairwise([*ticked, now] if ticked else []):
        if next_one - one > 2 * tick:
            yield Outage(since=one, until=next_one)
