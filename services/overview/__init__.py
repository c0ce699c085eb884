"""The overview: whether all is well, what is not, what runs, what comes next."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.store import overview, tenants
from models.store.scope import Scope
from models.store.tenants.closing import closing_rows, next_open
from runtime.database import reading
from services.actions import next_of_plan
from services.daemon import Daemon
from services.installation import Installation
from services.operations import OperationRow, views_of
from services.overview.timeline import Timeline, timeline_of
from services.verbs import READ, Verb
from services.verdict import State, Verdict, assess
from services.view import Instant, View

SOON = timedelta(hours=1)
SHOWN = 12
# Calendars may leave nothing of the first ones.
MOST_READ = 5 * SHOWN
# How many of the operations that ended last are searched for actions to show.
MOST_ENDED = 200
# Of each state of a verdict, on every page.
TONES = {State.OK: "good", State.ATTENTION: "warn", State.BROKEN: "bad"}


class Coming(View):
    """The next occurrence of an action."""

    app: str = Field(description="Its small app.")
    action: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Uid of the action.")
    at: Instant = Field(description="When it is due.")


class Overview(View):
    """The state of an installation, or of one small app, at a glance."""

    now: Instant = Field(description="The database's clock when it was read.")
    tone: str = Field(description="`good`, `busy`, `warn` or `bad`.")
    sentence: str = Field(description="Whether all is well.")
    advice: str = Field(description="What to do, or what there is.")
    verdict: Verdict = Field(description="All that is not well.")
    daemon: Daemon | None = Field(description="Null before the first tick.")
    running: tuple[OperationRow, ...] = Field(description="The longest first.")
    running_count: int = Field(description="How many operations run now.")
    coming: tuple[Coming, ...] = Field(description="Of the next hour, in order.")
    timeline: Timeline = Field(description="What ran and what comes, as bars.")


@Verb("show_overview", "GET /api/overview", READ)
def overview_of(installation: Installation) -> Overview:
    """Show whether all is well and what is not, what runs, and what comes next."""
    with reading(installation.engine) as connection:
        return _overview(connection, installation)


def _overview(connection: sa.Connection, installation: Installation) -> Overview:
    scope, settings = installation.scope, installation.settings
    apps = {one.id: one.name for one in tenants.listed(connection)}
    now, daemon, verdict, *_ = assess(connection, settings, scope, apps)
    if daemon is not None and scope.small_app_id is not None:
        # The report of a tick counts and names the actions of other small apps, too.
        daemon = daemon.model_copy(update={"report": {}})
    running, count = overview.running(connection, scope, SHOWN)
    coming = _coming(connection, scope, now)
    tone, advice = _shown_as(verdict, count)
    lanes = dict.fromkeys(
        [*(one.uid for one in verdict.findings if one.uid is not None)]
        + [row["action_uid"] for row in running]
        + [row["uid"] for _, row in coming]
        + overview.ended(connection, scope, MOST_ENDED)
    )
    return Overview(
        now=now,
        tone=tone,
        sentence=verdict.sentence,
        advice=advice,
        verdict=verdict,
        daemon=daemon,
        running=views_of(running),
        running_count=count,
        coming=tuple(
            Coming(app=apps.get(row["small_app_id"], ""), action=row["name"], uid=row["uid"], at=at)
            for at, row in coming
        ),
        timeline=timeline_of(connection, list(lanes)[:SHOWN], now, apps, settings),
    )


def _shown_as(verdict: Verdict, running: int) -> tuple[str, str]:
    """Return the tone of the verdict, and its advice; where all is well, what runs."""
    if verdict.state is not State.OK:
        return TONES[verdict.state], verdict.advice
    runs = {0: "Nothing runs now.", 1: "1 run is going on."}
    shown = runs.get(running, f"{running} runs are going on.")
    return ("busy" if running else "good"), shown


def _coming(
    connection: sa.Connection, scope: Scope, now: datetime
) -> list[tuple[datetime, dict[str, Any]]]:
    """Return the actions that are due within the next hour, in order.

    Of what is due now and no tick has decided, the one after that.
    """
    until = now + SOON
    rows = closing_rows(connection, overview.coming(connection, scope, until, MOST_READ))
    each = ((_next_at(row, now), row) for row in rows)
    found = [(at, row) for at, row in each if at is not None and at <= until]
    return sorted(found, key=lambda one: (one[0], one[1]["name"]))[:SHOWN]


def _next_at(row: Mapping[str, Any], now: datetime) -> datetime | None:
    at = row["next_occurrence_at"]
    return next_open(row) if at >= now else next_of_plan(row, now)
