"""The status of a small app's data."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.operation import DONE, ENDED, OperationState
from models.sql import read_clock, stands_in
from models.store.actions.cursors import UNSCHEDULED
from models.tables import action_cursor, actions, domains, operations, snapshots

STEP = "refresh"
# The phase in which the data may be about to change.
BLOCKING = "import"
MOST_SEEN = 200

_SHOWN: Sequence[sa.Column[Any]] = (
    operations.c.state,
    operations.c.phase,
    operations.c.message,
    operations.c.eta_at,
    operations.c.started_at,
    operations.c.error,
    operations.c.steps,
    operations.c.result,
)


def status_of(
    connection: sa.Connection, small_app_id: int, now: datetime | None = None
) -> dict[str, Any]:
    """Return the status of the small app's data as JSON, but with datetime instants.

    `status` is `running` during a refresh, else `failed` if the last one did not succeed, else
    `ready`; `empty` before the first. `blocking_maintenance` is true only in the phase `import`.
    `run_type`, `rewritten` and `reused` are those of the last refresh that ended.
    """
    running = _running(connection, small_app_id)
    last = _last_ended(connection, small_app_id)
    details = _details(last)
    now = now or read_clock(connection)
    return {
        "status": _status(running, last),
        "phase": running.phase if running else None,
        "message": running.message if running else None,
        "blocking_maintenance": bool(running and running.phase == BLOCKING),
        "next_run_at": _next_run_at(connection, small_app_id),
        "data_updated_at": _data_updated_at(connection, small_app_id),
        "last_error": _error(last),
        "run_type": details.get("run_type"),
        "rewritten": details.get("rewritten", []),
        "reused": details.get("reused", []),
        "eta": running.eta_at if running else None,
        "started_at": running.started_at if running else None,
        "elapsed_s": _seconds(running.started_at, now) if running else None,
        "eta_s": _seconds(now, running.eta_at) if running else None,
    }


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    if since is None or until is None:
        return None
    return max(0.0, round((until - since).total_seconds(), 3))


def _running(connection: sa.Connection, small_app_id: int) -> sa.Row[Any] | None:
    """Return the operation that is refreshing; of several, one that imports."""
    found = connection.execute(
        sa.select(*_SHOWN)
        .where(stands_in(operations.c.state, {OperationState.RUNNING}))
        .where(operations.c.small_app_id == small_app_id)
        .order_by(operations.c.started_at)
    ).all()
    refreshing = [row for row in found if _refreshes_now(row)]
    return next((row for row in refreshing if row.phase == BLOCKING), next(iter(refreshing), None))


def _refreshes_now(row: sa.Row[Any]) -> bool:
    return any(one["name"] == STEP and one["state"] == "running" for one in row.steps or ())


def _last_ended(connection: sa.Connection, small_app_id: int) -> sa.Row[Any] | None:
    """Return the last ended operation that began a refresh, among the recent ones."""
    found = connection.execute(
        sa.select(*_SHOWN)
        .where(operations.c.small_app_id == small_app_id)
        .where(operations.c.state.in_(ENDED), operations.c.steps.is_not(None))
        .order_by(operations.c.recorded_at.desc())
        .limit(MOST_SEEN)
    )
    return next((row for row in found if _step(row) is not None), None)


def _step(row: sa.Row[Any]) -> dict[str, Any] | None:
    """Return the refresh step of an operation; None if it did not begin."""
    steps: Sequence[dict[str, Any]] = row.steps or ()
    return next((one for one in steps if one["name"] == STEP and one["state"] != "waiting"), None)


def _status(running: sa.Row[Any] | None, last: sa.Row[Any] | None) -> str:
    if running is not None:
        return "running"
    if last is None:
        return "empty"
    return "ready" if last.state in DONE else "failed"


def _details(last: sa.Row[Any] | None) -> dict[str, Any]:
    step = None if last is None else _step(last)
    found: dict[str, Any] = (step or {}).get("details") or {}
    return found


def _error(last: sa.Row[Any] | None) -> str | None:
    """Return why the last refresh did not succeed in full; None if it did."""
    if last is None:
        return None
    failed: dict[str, str] = _details(last).get("failed", {})
    text = "; ".join(f"{name}: {error}" for name, error in failed.items())
    return last.error or text or None


def _next_run_at(connection: sa.Connection, small_app_id: int) -> datetime | None:
    found = connection.execute(
        sa.select(actions.c.document, action_cursor.c.next_occurrence_at)
        .join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
        .where(actions.c.small_app_id == small_app_id)
        .where(actions.c.active, actions.c.deleted_at.is_(None))
        .where(action_cursor.c.next_occurrence_at > UNSCHEDULED)
        .where(actions.c.document.contains(f'"{STEP}"'))
        .order_by(action_cursor.c.next_occurrence_at)
    )
    return next((row.next_occurrence_at for row in found if _refreshes(row.document)), None)


def _refreshes(document: str) -> bool:
    return bool(json.loads(document).get("operations", {}).get(STEP))


def _data_updated_at(connection: sa.Connection, small_app_id: int) -> datetime | None:
    """Return the import instant of the newest data in production."""
    shown: datetime | None = connection.execute(
        sa.select(sa.func.max(snapshots.c.created_at))
        .join(domains, domains.c.production_id == snapshots.c.id)
        .where(domains.c.small_app_id == small_app_id)
    ).scalar_one()
    return shown
