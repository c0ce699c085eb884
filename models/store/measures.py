"""What `/metrics` asks of the database: how it stands, and what ended lately.

Each query reads a part of an index.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from models.notices import FindingKind
from models.operation import OUTCOMES
from models.sql import database_now
from models.store.actions.missed import TIMES
from models.store.conditions import (
    IS_OWED,
    IS_RUNNING,
    IS_UNSTARTED,
    NOT_DELETED,
)
from models.tables import (
    actions,
    findings,
    missed_spans,
    notices,
    operations,
    small_apps,
    ticks,
)
from runtime.plug_ins import added

Rows = Sequence[Any]
Query = sa.Select[Any] | sa.CompoundSelect[Any]
_COUNT = sa.func.count()
_TIMES = _COUNT.label("times")


class Figure(NamedTuple):
    """A figure of small apps that a plug-in adds: a gauge, or a counter of what ended.

    The query of a gauge has no arguments, and that of a counter the span (since, until].
    """

    name: str
    help: str
    query: Callable[..., Query]


@dataclass(frozen=True, slots=True)
class EndResult:
    """What ended within (since, until]: rows with an app, a state and how many, if no others.

    `counted` are those of plug-ins, by the name of their counter.

    `missed` are missed occurrences that have no operations, `runs` operations with an outcome that
    began, and `ticks` the duration and report of each.
    """

    counted: Mapping[str, Rows]
    operations: Rows
    missed: Rows
    notices: Rows
    runs: Rows
    ticks: Rows


def ended(connection: sa.Connection, since: datetime, until: datetime) -> EndResult:
    """Return what ended within (since, until]."""

    def within(at: sa.Column[Any]) -> sa.ColumnElement[bool]:
        return sa.and_(at > since, at <= until)

    has_ended = within(operations.c.finished_at)
    of_runs = (
        *("queue", "cause", "attempt", "occurrence_at", "recorded_at"),
        *("first_started_at", "started_at", "finished_at", "steps"),
    )
    has_run = operations.c.state.in_(OUTCOMES) & operations.c.first_started_at.is_not(None)
    app = actions.c.small_app_id
    queries = (
        _by_state(operations).where(has_ended),
        sa.select(app, TIMES.label("times"))
        # An inner join lets SQLite read all actions first.
        .outerjoin(actions, actions.c.uid == missed_spans.c.action_uid)
        .where(within(missed_spans.c.recorded_at))
        .group_by(app),
        _by_state(notices).where(within(notices.c.finished_at)),
        sa.select(*(operations.c[name] for name in of_runs)).where(has_ended, has_run),
        sa.select(ticks.c.duration_ms, ticks.c.report).where(within(ticks.c.finished_at)),
    )
    counted = {one.name: one.query(since, until) for one in added("counted")}
    return EndResult(
        {name: connection.execute(query).all() for name, query in counted.items()},
        *(connection.execute(query).all() for query in queries),
    )


def _by_state(table: sa.Table) -> sa.Select[Any]:
    grouped = (table.c.small_app_id, table.c.state)
    return sa.select(*grouped, _TIMES).group_by(*grouped)


def app_names(connection: sa.Connection) -> dict[int, str]:
    """Return the name of each small app, deleted ones too, the oldest first."""
    query = sa.select(small_apps.c.id, small_apps.c.name).order_by(small_apps.c.id)
    return {row.id: row.name for row in connection.execute(query)}


def operations_now(connection: sa.Connection) -> Rows:
    """Return app, queue, task, state and count of what waits or runs.

    `oldest_at` is when the oldest was recorded, `beaten_at` the oldest heartbeat.
    """
    # Of what is found: SQLite would group all that each small app ever ran by its index.
    app = (operations.c.small_app_id + 0).label("small_app_id")
    grouped = (app, operations.c.queue, operations.c.task, operations.c.state)
    shown = (
        *grouped,
        _TIMES,
        sa.func.min(operations.c.recorded_at).label("oldest_at"),
        sa.func.min(operations.c.heartbeat_at).label("beaten_at"),
    )
    # One query per state, because each state has a partial index.
    parts = [
        sa.select(*shown).where(stands).group_by(*grouped) for stands in (IS_UNSTARTED, IS_RUNNING)
    ]
    return connection.execute(sa.union_all(*parts)).all()


def quick(lease: timedelta) -> dict[str, Query]:
    """Return the query of each gauge that changes from second to second: labels, then the value."""
    is_silent = IS_RUNNING & (operations.c.heartbeat_at < database_now(-lease))
    return {
        "notices_owed": _by_app(notices, IS_OWED),
        "leases_expired": sa.select(_COUNT).where(is_silent),
    }


def slow() -> dict[str, Query]:
    """Return the query of each gauge that changes from minute to minute: labels, then the value.

    An instant is the beginning of an age.
    """
    kind = sa.case(
        (actions.c.quarantined.is_not(None), "quarantined"),
        (actions.c.active, "active"),
        else_="paused",
    ).label("kind")
    by_kind = sa.select(actions.c.small_app_id, kind, _COUNT).where(NOT_DELETED)
    alerts = {"failing": FindingKind.FAILED, "overdue": FindingKind.OVERDUE}
    return {
        "actions": by_kind.group_by(actions.c.small_app_id, kind),
        "alerts_open": sa.union_all(*(_alerts(*one) for one in alerts.items())),
        **{one.name: one.query() for one in added("gauges")},
    }


def _by_app(table: sa.Table, stands: sa.ColumnElement[bool]) -> sa.Select[Any]:
    app = table.c.small_app_id
    return sa.select(app, _COUNT).where(stands).group_by(app)


def _alerts(reason: str, of: FindingKind) -> sa.Select[Any]:
    app = actions.c.small_app_id
    query = sa.select(app, sa.literal(reason), _COUNT).join(
        findings, findings.c.action_uid == actions.c.uid
    )
    is_open = (findings.c.kind == of, findings.c.ended_at.is_(None))
    return query.where(*is_open, NOT_DELETED).group_by(app)
