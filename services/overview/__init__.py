"""The overview: whether all is well, what is not, what ran, what runs, what comes next."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from minutebook.steps import SmallApp
from models.operation import OperationState
from models.store import overview, tenants
from models.store.actions import search as found_in
from models.store.actions.search import ActionFilter, Asked
from models.store.scope import Scope
from models.store.tenants.closing import closing_rows, next_open
from runtime.database import reading
from services.actions import row_of
from services.actions.search import FoundAction, schedule_in
from services.daemon import Daemon
from services.installation import Installation
from services.operations import OperationRow, views_of
from services.operations.last_runs import LastRun, last_runs_of
from services.overview.errors import ErrorGroup, errors_of
from services.overview.figures import Figures, figures_of
from services.overview.timeline import MOST_LANES, Timeline, timeline_of
from services.verbs import READ, Verb
from services.verdict import WORDS, Finding, State, Verdict, assess
from services.view import Instant, View

# Actions on the page; what runs is shown up to fewer.
MOST_ACTIONS = 30
MOST_RUNNING = 12
MOST_ACTIONS_COUNTED = 1_000
# Calendars may leave nothing of the first ones.
MOST_READ = 2 * MOST_ACTIONS
Rows = Sequence[Mapping[str, Any]]
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
# Of each state of a verdict, on every page.
TONES = {State.OK: "good", State.ATTENTION: "warn", State.BROKEN: "bad"}


class OverviewAction(FoundAction):
    """An action with its last runs."""

    state: str | None = Field(
        description="What is wrong with it, else `running`, or the state of its last run."
    )
    runs: tuple[LastRun, ...] = Field(description="Its last 30 runs, the newest last.")


class Overview(View):
    """The state of an installation, or of one small app, at a glance."""

    now: Instant = Field(description="The database's clock when it was read.")
    tone: str = Field(description="`good`, `busy`, `warn` or `bad`.")
    sentence: str = Field(description="Whether all is well.")
    advice: str = Field(description="What to do, or what there is.")
    verdict: Verdict = Field(description="All that is not well.")
    daemon: Daemon | None = Field(description="Null before the first tick.")
    figures: Figures = Field(description="What ran in the last day, what waits and what is due.")
    actions: tuple[OverviewAction, ...] = Field(
        description="The first 30: those that need attention, those that run, the next ones."
    )
    action_count: int = Field(description="How many there are, at most 1,000.")
    running: tuple[OperationRow, ...] = Field(description="The first 12, the longest first.")
    error_groups: tuple[ErrorGroup, ...] = Field(
        description="Of seven days, the most frequent first."
    )
    timeline: Timeline | None = Field(description="If asked for: what ran and comes, as bars.")


@Verb("show_overview", "GET /api/overview", READ)
def overview_of(installation: Installation, *, timeline: bool = False) -> Overview:
    """Show whether all is well and what is not, what runs, and what comes next."""
    with reading(installation.engine) as connection:
        return _overview(connection, installation, timeline=timeline)


def _overview(connection: sa.Connection, installation: Installation, *, timeline: bool) -> Overview:
    scope, settings = installation.scope, installation.settings
    apps = {one.id: one for one in tenants.listed(connection)}
    names = {id: one.name for id, one in apps.items()}
    now, daemon, verdict, *_ = assess(connection, settings, scope, names)
    if daemon is not None and scope.small_app_id is not None:
        # The report of a tick counts and names the actions of other small apps, too.
        daemon = daemon.model_copy(update={"report": {}})
    running = overview.running(connection, scope, MOST_ACTIONS)
    coming = closing_rows(connection, overview.coming(connection, scope, MOST_READ))
    figures = figures_of(connection, scope, now, coming)
    first = _rows(connection, scope, _order(verdict.findings, running, coming))
    rows = [row for row in first if row["small_app_id"] in apps]
    count = len(rows)
    if count == MOST_ACTIONS:
        count = found_in.count(connection, Asked(scope, ActionFilter()), MOST_ACTIONS_COUNTED)
    tone, advice = _shown_as(verdict, figures.running)
    drawn = rows[:MOST_LANES] if timeline else None
    return Overview(
        now=now,
        tone=tone,
        sentence=verdict.sentence,
        advice=advice,
        verdict=verdict,
        daemon=daemon,
        figures=figures,
        actions=_actions(connection, rows, apps, verdict.findings, (now, settings.alert.after)),
        action_count=count,
        running=views_of(running[:MOST_RUNNING]),
        error_groups=errors_of(connection, scope, now, names),
        timeline=drawn and timeline_of(connection, drawn, now, names, settings.scheduler.tick),
    )


def _shown_as(verdict: Verdict, running: int) -> tuple[str, str]:
    """Return the tone of the verdict, and its advice; where all is well, what runs."""
    if verdict.state is not State.OK:
        return TONES[verdict.state], verdict.advice
    runs = {0: "Nothing runs now.", 1: "1 run is going on."}
    shown = runs.get(running, f"{running} runs are going on.")
    return ("busy" if running else "good"), shown


def _order(findings: Iterable[Finding], running: Rows, coming: Rows) -> Sequence[UUID]:
    """Return the actions that come first: with troubles, running, and by their next occurrence."""
    by_next = sorted(coming, key=lambda row: (next_open(row) or NEVER, row["name"]))
    return [
        *(one.uid for one in findings if one.uid is not None),
        *(row["action_uid"] for row in running),
        *(row["uid"] for row in by_next),
    ]


def _rows(connection: sa.Connection, scope: Scope, first: Sequence[UUID]) -> list[dict[str, Any]]:
    """Return the first actions as they are listed, in their order; too few are filled up."""
    uids = list(dict.fromkeys(first))[:MOST_ACTIONS]
    if len(uids) < MOST_ACTIONS:
        more = found_in.uids(connection, Asked(scope, ActionFilter()), MOST_ACTIONS)
        uids = list(dict.fromkeys([*uids, *more]))[:MOST_ACTIONS]
    rows = closing_rows(connection, found_in.of_uids(connection, uids))
    # A deleted one may still run.
    kept = (row for row in rows if row["deleted_at"] is None)
    return sorted(kept, key=lambda row: uids.index(row["uid"]))


def _actions(
    connection: sa.Connection,
    rows: Rows,
    apps: Mapping[int, SmallApp],
    findings: Iterable[Finding],
    by: tuple[datetime, int],
) -> tuple[OverviewAction, ...]:
    """Return actions with their last runs; `by` is now, and after how many failures to alert."""
    runs = last_runs_of(connection, [row["uid"] for row in rows])
    troubles = {one.uid: WORDS[one.kind] for one in findings if one.uid is not None}
    found = []
    for row in rows:
        app, its_own = apps[row["small_app_id"]], runs.get(row["uid"], ())
        is_running = any(one.state == OperationState.RUNNING for one in its_own)
        state = troubles.get(row["uid"]) or ("running" if is_running else row["last_state"])
        one = row_of(row, *by, app.name)
        schedule = schedule_in(row, app.zone)
        found.append(OverviewAction.of(one, **schedule, state=state, runs=its_own))
    return tuple(found)
