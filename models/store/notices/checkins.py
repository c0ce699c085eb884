"""Check-ins: what a monitor such as Sentry Crons hears of an operation: its start and its end."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

import sqlalchemy as sa

from models.action.hooks import HooksModel
from models.action.monitors import config_of, slug_of
from models.action.plan import Broken, Plan
from models.notices import NoticeKind, Target
from models.operation import OperationState
from models.sql import database_now
from models.store import notices as store
from models.store.conditions import IS_OWED
from models.store.notices import Origin, Owed
from models.store.notices.payload import payload_of
from models.tables import notices
from runtime.clock import utc_now
from runtime.sections import AlertSettings

# Ends of operations that never began: what was missed has a notice of its own.
_UNBEGUN = frozenset({OperationState.SKIPPED, OperationState.MISSED, OperationState.HANDED_OVER})


def monitors(hooks: HooksModel | None, alerts: AlertSettings) -> tuple[Target, ...]:
    """Return the monitor of an action, if it has one and the installation knows where it is.

    Without a name of its own, the monitor is named after the action.
    """
    wanted = None if hooks is None else hooks.monitor
    wanted = alerts.sentry_all if wanted is None else wanted
    if not wanted or not alerts.sentry_dsn.get_secret_value():
        return ()
    return (Target("monitor", wanted if isinstance(wanted, str) else ""),)


def hears_of(state: OperationState, payload: Mapping[str, Any]) -> bool:
    """Return whether a monitor hears of such an end: not if it was cancelled before its start."""
    is_unbegun = state is OperationState.CANCELLED and payload["first_started_at"] is None
    return state not in _UNBEGUN and not is_unbegun


def monitor_in(plan: Plan | Broken | None) -> dict[str, Any]:
    """Return the schedule that a notice tells the monitor, in Sentry's form."""
    config = config_of(plan) if isinstance(plan, Plan) else None
    return {} if config is None else {"monitor": config}


def check_in_id(connection: sa.Connection, operation_id: UUID) -> str:
    """Return the id of an operation's check-in: its own, and another one after each end.

    Sentry ignores what it hears of a check-in that has ended.
    """
    its = (notices.c.operation_id == operation_id, notices.c.kind == NoticeKind.ENDED)
    query = sa.select(sa.func.count()).select_from(notices).where(*its)
    ends = connection.execute(query).scalar_one()
    return (uuid5(operation_id, str(ends)) if ends else operation_id).hex


def began(
    connection: sa.Connection, operation_id: UUID, plan: Plan, alerts: AlertSettings
) -> list[Owed]:
    """Enqueue what a monitor hears of the start of an operation; return it, to be sent now."""
    targets = monitors(plan.hooks, alerts)
    if not targets:
        return []
    payload, id = payload_of(connection, operation_id), check_in_id(connection, operation_id)
    origin = Origin(
        payload.pop("small_app_id"), UUID(payload["action_uid"]), operation_id, f"start {id}",
        operation_id=operation_id,
    )  # fmt: skip
    kind = NoticeKind.STARTED
    told = {"kind": kind, **payload, "check_in_id": id, **monitor_in(plan)}
    return store.enqueue(connection, origin, kind, targets, told)


def headers_of(
    connection: sa.Connection, row: sa.Row[Any], alerts: AlertSettings
) -> dict[str, Any]:
    """Return the headers by which Sentry's integration for Celery checks in for a task.

    Beat adds the same, if `monitor_beat_tasks` is set; without that, a worker ignores them. `row`
    has the operation's id and plan, and the names of its action and small app.
    """
    targets = monitors(row.plan.hooks, alerts)
    if not targets:
        return {}
    return {
        "sentry-monitor-slug": targets[0].to or slug_of(row.app, row.action),
        "sentry-monitor-config": config_of(row.plan) or {},
        "sentry-monitor-start-timestamp-s": f"{utc_now().timestamp():.9f}",
        "sentry-monitor-check-in-id": check_in_id(connection, row.id),
    }


def withdraw_start(connection: sa.Connection, operation_id: UUID) -> None:
    """End the notice of a start that was not delivered yet: the end says it too."""
    its = (notices.c.operation_id == operation_id, notices.c.kind == NoticeKind.STARTED, IS_OWED)
    values = {"state": "done", "finished_at": database_now(), "error": "its end is reported"}
    connection.execute(sa.update(notices).where(*its).values(values))
