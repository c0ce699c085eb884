"""The overview: whether all is well, what runs, what needs attention, what comes next."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.problems import listed
from models.store import overview, quiet, ticks
from models.store.matters import matters_of
from models.store.scope import Scope
from runtime.config import Settings
from runtime.database import reading
from small_apps.store import small_apps
from views.actions import next_of_plan
from views.installation import Installation
from views.operations import OperationRow, readable
from views.overview.attention import MOST, Attention, attention_in
from views.overview.timeline import Timeline, timeline_of
from views.status import Daemon, daemon_in
from views.view import Instant, View
from views.words import lasting

SOON = timedelta(hours=1)
SHOWN = 12
MOST_UNSCHEDULED = 100
START_DAEMON = "Start one: minutebook up, or minutebook daemon."


class Coming(View):
    """The next occurrence of an action."""

    app: str
    action: str
    uid: UUID
    at: Instant


class Overview(View):
    """The state of an installation, or of one small app, at a glance."""

    now: Instant
    tone: str = Field(description="`good`, `busy`, `warn` or `bad`.")
    sentence: str = Field(description="Whether all is well.")
    advice: str = Field(description="What to do, or what there is.")
    daemon: Daemon | None = Field(description="Null before the first tick.")
    running: tuple[OperationRow, ...] = Field(description="The longest first.")
    running_count: int
    attention: tuple[Attention, ...] = Field(
        description="Those that are unhealthy, then those that recovered in 24 hours."
    )
    coming: tuple[Coming, ...] = Field(description="Of the next hour, in order.")
    timeline: Timeline


def overview_of(installation: Installation) -> Overview:
    """Return the overview of the request's scope."""
    with reading(installation.engine) as connection:
        return _overview(connection, installation)


def _overview(connection: sa.Connection, installation: Installation) -> Overview:
    now, quiet_until = quiet.clock_and_end(connection)
    scope, settings = installation.scope, installation.settings
    apps = {one.id: one.name for one in small_apps.listed(connection)}
    daemon = daemon_in(connection, settings, now)
    if daemon is not None and scope.small_app_id is not None:
        # The report of a tick counts and names the actions of other small apps, too.
        daemon = daemon.model_copy(update={"report": {}})
    running, count = overview.running(connection, scope, SHOWN)
    matters = matters_of(connection, scope, settings.alert.overdue, now, MOST)
    attention = attention_in(connection, installation, now, apps, matters)
    coming = _coming(connection, scope, now)
    needs = [one for one in attention if not one.is_over]
    lacks_worker = _lacks_worker(connection, needs, settings)
    verdict = _verdict(daemon, needs, now, running=count, lacks_worker=lacks_worker)
    tone, sentence, advice = _unless_quiet(verdict, quiet_until, now)
    lanes = dict.fromkeys(
        [*(one.uid for one in needs), *(row["action_uid"] for row in running)]
        + [row["uid"] for _, row in coming]
        + [one.action_uid for one in matters.ended]
    )
    return Overview(
        now=now,
        tone=tone,
        sentence=sentence,
        advice=advice,
        daemon=daemon,
        running=readable(running),
        running_count=count,
        attention=tuple(attention[:SHOWN]),
        coming=tuple(_shown(at, row, apps) for at, row in coming),
        timeline=timeline_of(
            connection,
            list(lanes)[:SHOWN],
            now,
            apps,
            settings,
            has_load=scope.small_app_id is None,
        ),
    )


def _lacks_worker(
    connection: sa.Connection, needs: Sequence[Attention], settings: Settings
) -> bool:
    """Return whether something is overdue and no worker lives."""
    is_waiting = any(one.kind == "overdue" for one in needs)
    return is_waiting and not ticks.live_workers(connection, settings.worker.lease)


def _shown(at: datetime, row: Mapping[str, Any], apps: Mapping[int, str]) -> Coming:
    app = apps.get(row["small_app_id"], "")
    return Coming(app=app, action=row["name"], uid=row["uid"], at=at)


def _unless_quiet(
    verdict: tuple[str, str, str], ends_at: datetime | None, now: datetime
) -> tuple[str, str, str]:
    """Return the verdict, or that of a quiet period if nothing is worse."""
    if ends_at is None or verdict[0] not in {"good", "busy"}:
        return verdict
    sentence = f"A quiet period lasts for {lasting(ends_at - now)}."
    return "warn", sentence, "What is due is recorded, and sent when it ends."


def _coming(
    connection: sa.Connection, scope: Scope, now: datetime
) -> list[tuple[datetime, dict[str, Any]]]:
    """Return the actions that are due within the next hour, in order.

    The next tick computes the occurrence of one that was just stored; here it is computed at once.
    """
    until = now + SOON
    found = []
    for row in overview.coming(connection, scope, until, SHOWN, MOST_UNSCHEDULED):
        at = row["next_occurrence_at"]
        at = at if at is not None and at >= now else next_of_plan(row, now)
        if at is not None and at <= until:
            found.append((at, row))
    return sorted(found, key=lambda one: (one[0], one[1]["name"]))[:SHOWN]


def _verdict(
    daemon: Daemon | None,
    needs: Sequence[Attention],
    now: datetime,
    *,
    running: int,
    lacks_worker: bool,
) -> tuple[str, str, str]:
    """Return the tone, the sentence and the advice: those of the worst finding."""
    if daemon is None:
        return "bad", "No daemon has ticked yet.", START_DAEMON
    if not daemon.is_ticking:
        since = lasting(now - daemon.last_tick_at)
        advice = f"Its last tick was {since} ago, by {daemon.name}. {START_DAEMON}"
        return "bad", "No daemon ticks, so nothing new starts.", advice
    if lacks_worker:
        advice = "Start one: minutebook worker."
        return "bad", "Operations wait, and no worker is there to take them.", advice
    if needs:
        tone = "bad" if any(one.kind in {"failed", "set aside"} for one in needs) else "warn"
        return tone, _count(needs), _named(needs)
    tone = "busy" if running else "good"
    runs = {0: "Nothing runs now.", 1: "1 operation runs now."}
    return tone, "All is well.", runs.get(running, f"{running} operations run now.")


def _count(needs: Sequence[Attention]) -> str:
    if len(needs) > SHOWN:
        return f"More than {SHOWN} actions need attention."
    count = "1 action needs" if len(needs) == 1 else f"{len(needs)} actions need"
    return f"{count} attention."


def _named(needs: Sequence[Attention]) -> str:
    """Return which actions have which trouble, in one sentence for each kind."""
    kinds: dict[str, list[str]] = {}
    for one in needs[:SHOWN]:
        kinds.setdefault(one.kind, []).append(one.action)
    return " ".join(f"{kind.capitalize()}: {listed(names)}." for kind, names in kinds.items())
