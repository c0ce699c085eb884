"""The timeline of an overview: what the actions that matter did, and what is to come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.action.plan import Broken, Plan
from models.action.schedule import ONE_SECOND
from models.operation import worst
from models.store import overview
from models.stored import uuid_in
from runtime.config import Settings
from scheduler.occurrence import next_occurrences
from views.view import Instant, Seconds, View

BACK = timedelta(hours=24)
AHEAD = timedelta(hours=12)
SPAN = timedelta(minutes=15)


class Bar(View):
    """The operations of an action in a quarter of an hour."""

    at: Instant = Field(description="Start of the span.")
    state: str = Field(description="Their worst state.")
    counts: dict[str, int] = Field(description="How many are in each state.")
    operation_id: UUID | None = Field(description="The operation, if it is one alone.")


class Lane(View):
    """An action on the timeline."""

    app: str = Field(description="Its small app.")
    action: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Uid of the action.")
    bars: tuple[Bar, ...] = Field(description="What it ran, in spans of a quarter of an hour.")
    coming: tuple[Instant, ...] = Field(description="To come: its first of each span.")


class Load(View):
    """How many operations the ticks of a quarter of an hour recorded."""

    at: Instant = Field(description="Start of the span.")
    recorded: int = Field(description="How many operations were recorded.")
    busiest: int = Field(description="Of one tick.")


class Outage(View):
    """A time in which no daemon ticked."""

    since: Instant = Field(description="The last tick before it.")
    until: Instant = Field(description="The first tick after it.")


class Ticked(View):
    """One tick of the daemon."""

    at: Instant = Field(description="The instant up to which it decided.")
    lag_s: Seconds = Field(description="Seconds from that instant to its end.")
    duration_ms: float
    recorded: int = Field(description="Operations that it recorded.")


class Timeline(View):
    """The last 24 hours and the next 12."""

    since: Instant = Field(description="Its beginning.")
    now: Instant = Field(description="The database's clock when it was read.")
    until: Instant = Field(description="Its end.")
    lanes: tuple[Lane, ...] = Field(description="One for each action.")
    load: tuple[Load, ...] = Field(description="Of all small apps; empty for one of them.")
    outages: tuple[Outage, ...] = Field(description="When no daemon ticked.")


def timeline_of(
    connection: sa.Connection,
    uids: Sequence[UUID],
    now: datetime,
    apps: Mapping[int, str],
    settings: Settings,
    *,
    has_load: bool,
) -> Timeline:
    """Return the timeline of some actions, in their order; `has_load` only for all small apps."""
    since, until = now - BACK, now + AHEAD
    found = {row["uid"]: row for row in (overview.named(connection, uids) if uids else ())}
    bars = _bars(overview.counted(connection, list(found), since, SPAN) if found else ())
    ticked = overview.ticked(connection, since)
    return Timeline(
        since=since,
        now=now,
        until=until,
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
        load=tuple(_load(ticked)) if has_load else (),
        outages=tuple(_outages(ticked, now, settings.scheduler.tick)),
    )


def ticked_of(rows: Iterable[Mapping[str, Any]]) -> Iterable[Ticked]:
    """Return stored ticks, in their order."""
    for row in rows:
        yield Ticked(
            at=row["now"],
            lag_s=round((row["finished_at"] - row["now"]).total_seconds(), 3),
            duration_ms=row["duration_ms"],
            recorded=_recorded(row),
        )


def _recorded(row: Mapping[str, Any]) -> int:
    """Return how many operations a tick recorded; 0 in a report that cannot be read."""
    recorded = row["report"].get("recorded", 0)
    return recorded if isinstance(recorded, int) else 0


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


def _coming(row: Mapping[str, Any], now: datetime, until: datetime) -> tuple[datetime, ...]:
    plan = row["plan"]
    if isinstance(plan, Broken) or not plan.active:
        return ()
    return tuple(_first_of_spans(plan, row["uid"], now, until))


def _first_of_spans(plan: Plan, uid: UUID, since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the first occurrence in (since, until] of each span, ascending."""
    while (found := next_occurrences(plan, uid, since, 1)) and found[0] <= until:
        yield found[0]
        number = found[0].timestamp() // SPAN.total_seconds()
        since = datetime.fromtimestamp((number + 1) * SPAN.total_seconds(), UTC) - ONE_SECOND


def _load(ticked: Iterable[Mapping[str, Any]]) -> Iterable[Load]:
    spans: dict[int, list[int]] = {}
    for row in ticked:
        if recorded := _recorded(row):
            spans.setdefault(int(row["now"].timestamp() // SPAN.total_seconds()), []).append(
                recorded
            )
    for number, counts in sorted(spans.items()):
        at = datetime.fromtimestamp(number * SPAN.total_seconds(), UTC)
        yield Load(at=at, recorded=sum(counts), busiest=max(counts))


def _outages(
    ticked: Sequence[Mapping[str, Any]], now: datetime, tick: timedelta
) -> Iterable[Outage]:
    """Return the times of more than two ticks between two ticks, or after the last."""
    instants = [row["now"] for row in ticked]
    for one, next_one in pairwise([*instants, now] if instants else []):
        if next_one - one > 2 * tick:
            yield Outage(since=one, until=next_one)
