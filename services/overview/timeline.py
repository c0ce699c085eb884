"""The timeline of an overview: what the actions that matter did, and what is to come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
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


class Zoom(StrEnum):
    """How far a timeline reaches back; it reaches half as far ahead."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"

    @property
    def back(self) -> timedelta:
        """How far it reaches back."""
        return _ZOOMS[self][0]

    @property
    def span(self) -> timedelta:
        """How long the span of a bar is."""
        return _ZOOMS[self][1]


_ZOOMS = {
    Zoom.HOUR: (timedelta(hours=1), timedelta(minutes=1)),
    Zoom.DAY: (timedelta(days=1), timedelta(minutes=15)),
    Zoom.WEEK: (timedelta(days=7), timedelta(hours=2)),
}


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
    """The last hour, day or week, and half as much to come."""

    since: Instant = Field(description="Its beginning.")
    now: Instant = Field(description="The database's clock when it was read.")
    until: Instant = Field(description="Its end.")
    span_s: Seconds = Field(description="Seconds of the span of a bar.")
    lanes: tuple[Lane, ...] = Field(description="One for each action.")
    outages: tuple[Outage, ...] = Field(description="When no daemon ticked; empty for a week.")


def timeline_of(
    connection: sa.Connection,
    uids: Sequence[UUID],
    now: datetime,
    apps: Mapping[int, str],
    settings: Settings,
    zoom: Zoom,
) -> Timeline:
    """Return the timeline of some actions, in their order."""
    since, until, span = now - zoom.back, now + zoom.back / 2, zoom.span
    rows = closing_rows(connection, overview.named(connection, uids) if uids else ())
    found = {row["uid"]: row for row in rows}
    bars = _bars(overview.counted(connection, list(found), since, span) if found else (), span)
    # A week has too many ticks to read.
    ticked = [] if zoom is Zoom.WEEK else overview.ticked(connection, since)
    return Timeline(
        since=since,
        now=now,
        until=until,
        span_s=span.total_seconds(),
        lanes=tuple(
            Lane(
                app=apps.get(found[uid]["small_app_id"], ""),
                action=found[uid]["name"],
                uid=uid,
                bars=bars.get(uid, ()),
                coming=_coming(found[uid], (now, until), span),
            )
            for uid in uids
            if uid in found
        ),
        outages=tuple(_outages(ticked, now, settings.scheduler.tick)),
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
            at=datetime.fromtimestamp(number * span.total_seconds(), UTC),
            state=worst(counts),
            counts=counts,
            operation_id=uuid_in(some[0]["id"]) if is_one else None,
        )
        made[uid] = (*made.get(uid, ()), bar)
    return made


def _coming(
    row: Mapping[str, Any], within: tuple[datetime, datetime], span: timedelta
) -> tuple[datetime, ...]:
    plan = row["plan"]
    if isinstance(plan, UnreadablePlan) or not plan.active:
        return ()
    return tuple(_first_of_spans(plan, row["uid"], within, span))


def _first_of_spans(
    plan: Plan, uid: UUID, within: tuple[datetime, datetime], span: timedelta
) -> Iterator[datetime]:
    """Yield the first occurrence in (since, until] of each span, ascending."""
    since, until = within
    while (found := next_occurrences(plan, uid, since, 1)) and found[0] <= until:
        yield found[0]
        number = found[0].timestamp() // span.total_seconds()
        since = datetime.fromtimestamp((number + 1) * span.total_seconds(), UTC) - ONE_SECOND


def _outages(ticked: Sequence[datetime], now: datetime, tick: timedelta) -> Iterable[Outage]:
    """Return the times of more than two ticks between two ticks, or after the last."""
    for one, next_one in pairwise([*ticked, now] if ticked else []):
        if next_one - one > 2 * tick:
            yield Outage(since=one, until=next_one)
