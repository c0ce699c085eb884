"""The overview: whether all is well, what runs, what needs attention, what comes next."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.problems import listed
from models.sql import read_clock
from models.store import actions, operations, overview, ticks
from models.values import format_instant
from runtime.database import reading
from small_apps.store import small_apps
from views.installation import Installation
from views.operations import OperationRow, readable
from views.overview.timeline import Timeline, timeline_of
from views.status import Daemon, daemon_in
from views.view import Instant, View
from views.words import lasting

DAY = timedelta(days=1)
SOON = timedelta(hours=1)
SHOWN = 12
START_DAEMON = "Start one: minutehand up, or python scheduler_server.py."


class Attention(View):
    """An action that needs a look, by its last operation that went wrong."""

    app: str
    action: str
    uid: UUID
    kind: str = Field(description="`failed`, `partial`, `missed`, `overdue` or `set aside`.")
    reason: str = Field(description="What happened, in words.")
    times: int = Field(description="How often, in the last 24 hours.")
    at: Instant | None = Field(description="When it happened last.")
    operation_id: UUID | None
    remedy: str | None = Field(description="`retry`, `rerun` or `edit`; null for none.")
    is_over: bool = Field(description="Whether a later run succeeded.")


class Coming(View):
    """The next occurrence of an action."""

    app: str
    action: str
    uid: UUID
    at: Instant


class OverviewRun(OperationRow):
    """A running operation and its small app."""

    app: str


class Overview(View):
    """The state of an installation, or of one small app, at a glance."""

    now: Instant
    tone: str = Field(description="`good`, `busy`, `warn` or `bad`.")
    sentence: str = Field(description="Whether all is well.")
    advice: str = Field(description="What to do, or what there is.")
    daemon: Daemon | None = Field(description="Null before the first tick.")
    running: tuple[OverviewRun, ...] = Field(description="The longest first.")
    running_count: int
    attention: tuple[Attention, ...] = Field(description="Of the last 24 hours; open ones first.")
    coming: tuple[Coming, ...] = Field(description="Of the next hour, in order.")
    timeline: Timeline


def overview_of(installation: Installation) -> Overview:
    """Return the overview of the request's scope."""
    with reading(installation.engine) as connection:
        return _overview(connection, installation)


def _overview(connection: sa.Connection, installation: Installation) -> Overview:
    now, scope, settings = read_clock(connection), installation.scope, installation.settings
    apps = {one.id: one.name for one in small_apps.listed(connection)}
    daemon = daemon_in(connection, settings, now)
    if daemon is not None and scope.small_app_id is not None:
        # What a tick did counts and names the actions of other small apps.
        daemon = daemon.model_copy(update={"report": {}})
    ids, count = overview.running(connection, scope, SHOWN)
    attention = _attention(connection, installation, now, apps)
    coming = overview.coming(connection, scope, now + SOON, SHOWN)
    running = _rows(connection, ids)
    needs = [one for one in attention if not one.is_over]
    workers = ticks.live_workers(connection, timedelta(seconds=settings.worker.lease_s))
    is_waiting = any(one.kind == "overdue" for one in needs)
    tone, sentence, advice = _verdict(
        daemon, needs, now, running=count, lacks_worker=is_waiting and not workers
    )
    lanes = dict.fromkeys(
        [*(one.uid for one in needs), *(row["action_uid"] for row in running)]
        + [row["uid"] for row in coming]
        + overview.recently_ended(connection, scope, now - DAY, 200)
    )
    return Overview(
        now=now,
        tone=tone,
        sentence=sentence,
        advice=advice,
        daemon=daemon,
        running=tuple(_run(row, apps) for row in running),
        running_count=count,
        attention=tuple(attention),
        coming=tuple(
            Coming(
                app=apps.get(row["small_app_id"], ""),
                action=row["name"],
                uid=row["uid"],
                at=row["next_occurrence_at"],
            )
            for row in coming
        ),
        timeline=timeline_of(
            connection,
            list(lanes)[:SHOWN],
            now,
            apps,
            settings,
            has_load=scope.small_app_id is None,
        ),
    )


def _rows(connection: sa.Connection, ids: Sequence[UUID]) -> list[dict[str, Any]]:
    found = {row["id"]: row for row in (operations.by_ids(connection, ids) if ids else ())}
    return [found[id] for id in ids if id in found]


def _run(row: Mapping[str, Any], apps: Mapping[int, str]) -> OverviewRun:
    (shown,) = readable([row])
    return OverviewRun(**dict(shown), app=apps.get(row["small_app_id"], ""))


def _attention(
    connection: sa.Connection,
    installation: Installation,
    now: datetime,
    apps: Mapping[int, str],
) -> list[Attention]:
    scope, late = installation.scope, installation.settings.alert.overdue
    aside = [
        Attention(
            app=apps.get(row["small_app_id"], ""),
            action=row["name"],
            uid=row["uid"],
            kind="set aside",
            reason=row["set_aside"],
            times=1,
            at=row["updated_at"],
            operation_id=None,
            remedy="edit",
            is_over=False,
        )
        for row in actions.set_aside_actions(connection, scope)[:SHOWN]
        if row["uid"] is not None
    ]
    overdue = overview.overdue(connection, scope, late, SHOWN)
    troubled = overview.troubled(connection, scope, now - DAY, SHOWN)
    figures = {row["id"]: row for row in (*overdue, *troubled)}
    rows = _rows(connection, list(figures))
    seen: dict[UUID, Attention] = {one.uid: one for one in aside}
    for row in rows:
        seen.setdefault(row["action_uid"], _trouble(row, figures[row["id"]], apps))
    return sorted(seen.values(), key=lambda one: one.is_over)


def _trouble(
    row: Mapping[str, Any], figures: Mapping[str, Any], apps: Mapping[int, str]
) -> Attention:
    kind, remedy, at = row["state"], None, row["finished_at"]
    if kind in {"failed", "partial"}:
        reason, remedy = row["error"] or row["reason"] or "it gave no reason", "retry"
    elif kind == "missed":
        reason, remedy = row["reason"] or "no daemon ran in time", "rerun"
    else:
        kind, at = "overdue", row["occurrence_at"]
        reason = f"its occurrence of {format_instant(at)} has not started"
    return Attention(
        app=apps.get(row["small_app_id"], ""),
        action=row["action_name"],
        uid=row["action_uid"],
        kind=kind,
        reason=reason,
        times=figures["times"],
        at=at,
        operation_id=row["id"],
        remedy=remedy,
        is_over=bool(figures.get("is_over", False)),
    )


def _verdict(
    daemon: Daemon | None,
    needs: Sequence[Attention],
    now: datetime,
    *,
    running: int,
    lacks_worker: bool,
) -> tuple[str, str, str]:
    """Return the tone, the sentence and the advice: the worst thing alone speaks."""
    if daemon is None:
        return "bad", "No daemon has ticked yet.", START_DAEMON
    if not daemon.is_ticking:
        since = lasting(now - daemon.last_tick_at)
        advice = f"Its last tick was {since} ago, by {daemon.name}. {START_DAEMON}"
        return "bad", "No daemon ticks, so nothing new starts.", advice
    if lacks_worker:
        advice = "Start one: minutehand worker."
        return "bad", "Operations wait, and no worker is there to take them.", advice
    if needs:
        tone = "bad" if any(one.kind in {"failed", "set aside"} for one in needs) else "warn"
        count = "1 action needs" if len(needs) == 1 else f"{len(needs)} actions need"
        return tone, f"{count} attention.", _named(needs)
    tone = "busy" if running else "good"
    runs = {0: "Nothing runs now.", 1: "1 operation runs now."}
    return tone, "All is well.", runs.get(running, f"{running} operations run now.")


def _named(needs: Iterable[Attention]) -> str:
    """Return which actions have which trouble, in one sentence for each kind."""
    kinds: dict[str, list[str]] = {}
    for one in needs:
        kinds.setdefault(one.kind, []).append(one.action)
    return " ".join(f"{kind.capitalize()}: {listed(names)}." for kind, names in kinds.items())
