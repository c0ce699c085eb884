"""The timeline of an overview: what the actions that matter did, and what is to come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.action.plan import Plan, UnreadablePlan
from models.action.schedule import ONE_SECOND
from models.operation import worst
from models.store import overview
from models.store.tenants.closing import closing_rows
from models.stored import uuid_in
from runtime.config import Settings
from scheduler.occurrence import next_occurrences
from services.view import Instant, Seconds, View

# How far a timeline reaches back and ahead, and the span of a bar.
BACK = timedelta(days=1)
AHEAD = BACK / 2
SPAN = timedelta(minutes=15)


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
    """The last day, and half a day to come."""

    since: Instant = Field(description="Its beginning.")
    now: Instant = Field(description="The database's clock when it was read.")
    until: Instant = Field(description="Its end.")
    span_s: Seconds = Field(description="Seconds of the span of a bar.")
    lanes: tuple[Lane, ...] = Field(description="One for each action.")
    outages: tuple[Outage, ...] = Field(description="When no daemon ticked.")


def timeline_of(
    connection: sa.Connection,
    uids: Sequence[UUID],
    now: datetime,
    apps: Mapping[int, str],
    settings: Settings,
) -> Timeline:
    """Return the timeline of some actions, in their order."""
    since, until = now - BACK, now + AHEAD
    rows = closing_rows(connection, overview.named(connection, uids) if uids else ())
    found = {row["uid"]: row for row in rows}
    bars = _bars(overview.counted(connection, list(found), since, SPAN) if found else ())
    ticked = overview.ticked(connection, since)
    return Timeline(
        since=since,
        now=now,
        until=until,
        span_s=SPAN.total_seconds(),
        lanes=tuple(
            Lane(
                app=apps.get(found[uid]["small_app_id"], ""),
                action=found[uid]["name"],
                uid=uid,
                bars=bars.get(uid, ()),
                coming=_coming(found[uid], now, until),
            )
            for uid in uids
            if uid in found
        ),
        outages=tuple(_outages(ticked, now, settings.scheduler.tick)),
    )


def _bars(rows: Iterable[Mapping[str, Any]]) -> dict[UUID, tuple[Bar, ...]]:
    spans: dict[tuple[UUID, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        spans.setdefault((row["action_uid"], row["span"]), []).append(row)
    made: dict[UUID, tuple[Bar, ...]] = {}
    for (uid, number), some in sorted(spans.items()):
        counts = {row["state"]: row["count"] for row in some}
        is_one = sum(counts.values()) == 1
        bar = Bar(
            at=datetime.fromtimestamp(number * SPAN.total_seconds(), UTC),
            state=worst(counts),
            counts=counts,
            operation_id=uuid_in(some[0]["id"]) if is_one else None,
        )
        made[uid] = (*made.get(uid, ()), bar)
    return made


def _coming(row: Mapping[str, Any], since: datetime, until: datetime) -> tuple[datetime, ...]:
    plan = row["plan"]
    if isinstance(plan, UnreadablePlan) or not plan.active:
        return ()
    return tuple(_first_of_spans(plan, row["uid"], since, until))


def _first_of_spans(plan: Plan, uid: UUID, since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the first occurrence in (since, until] of each span, ascending."""
    while (found := next_occurrences(plan, uid, since, 1)) and found[0] <= until:
        yield found[0]
        number = found[0].timestamp() // SPAN.total_seconds()
        since = datetime.fromtimestamp((number + 1) * SPAN.total_seconds(), UTC) - ONE_SECOND


def _outages(ticked: Sequence[datetime], now: datetime, tick: timedelta) -> Iterable[Outage]:
    """Return the times of more than two ticks between two ticks, or after the last."""
    for one, next_one in pairwise([*ticked, now] if ticked else []):
        if next_one - one > 2 * tick:
            yield Outage(since=one, until=next_one)
