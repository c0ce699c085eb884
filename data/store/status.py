"""The status of a small app's data."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from data.store.tables import REFRESHING, domains, snapshots
from models.operation import DONE, ENDED, OperationState
from models.store.conditions import IS_RUNNING
from models.store.operations.eta import Left, left_of
from models.store.scope import Scope
from models.store.tenants.closing import closing_rows, next_open
from models.stored import document_in
from models.tables import action_cursor, actions, operations, small_apps

STEP = "refresh"
# The steps that change data.
CHANGING = frozenset({STEP, "publish"})
# The key of a document.
PUBLIC = "public_status"
MOST_SEEN = 200

_SHOWN: Sequence[sa.Column[Any]] = (
    operations.c.small_app_id,
    operations.c.recorded_at,
    operations.c.state,
    operations.c.phase,
    operations.c.message,
    operations.c.is_blocking,
    operations.c.heartbeat_at,
    operations.c.eta_at,
    operations.c.started_at,
    operations.c.error,
    operations.c.steps,
    operations.c.result,
)


def statuses_of(
    connection: sa.Connection, small_app_ids: Collection[int], now: datetime, lease: timedelta
) -> dict[int, dict[str, Any]]:
    """Return the status of each small app's data as JSON, but with datetime instants.

    `status` is `running` while data are refreshed or published, or a step blocks; else `failed` if
    the last refresh did not succeed, else `ready`; `empty` before the first. `run_type`,
    `rewritten` and `reused` are those of the last refresh that ended, if it is among the last
    operations. `blocking_maintenance` is never true without a heartbeat within the `lease`: a
    worker that has lost it changes nothing more, though the row waits for the next sweep.
    """
    if not small_app_ids:
        return {}
    runs = _runs(connection, small_app_ids)
    data = _data(connection, small_app_ids)
    return {
        id: {
            **_status_in(runs.get(id, []), now, has_data=shown.pop("has_data")),
            "blocking_maintenance": any(_blocks(row, now, lease) for row in runs.get(id, [])),
            **shown,
        }
        for id, shown in data.items()
    }


def public_app(connection: sa.Connection, name: str) -> int | None:
    """Return the id of a small app, None unless its document makes its status public."""
    query = sa.select(small_apps.c.id, small_apps.c.document)
    query = query.where(small_apps.c.deleted_at.is_(None), small_apps.c.name == name)
    row = connection.execute(query).one_or_none()
    is_public = row is not None and document_in(row.document).get(PUBLIC) is True
    return row.id if row is not None and is_public else None


def _status_in(runs: Sequence[sa.Row[Any]], now: datetime, *, has_data: bool) -> dict[str, Any]:
    running = _running([row for row in runs if row.state == OperationState.RUNNING])
    last = next((row for row in runs if row.state in ENDED and _step(row) is not None), None)
    details = _details(last)
    left = left_of(running.started_at, running.eta_at, now) if running else Left()
    return {
        "status": _status(running, last, has_data=has_data),
        "phase": running.phase if running else None,
        "message": running.message if running else None,
        "last_error": _error(last),
        "run_type": details.get("run_type"),
        "rewritten": details.get("rewritten", []),
        "reused": details.get("reused", []),
        "started_at": running.started_at if running else None,
        "elapsed_s": _seconds(running.started_at, now) if running else None,
        **asdict(left),
    }


def _seconds(since: datetime | None, until: datetime) -> float | None:
    return None if since is None else max(0.0, round((until - since).total_seconds(), 3))


def _runs(
    connection: sa.Connection, small_app_ids: Collection[int]
) -> dict[int, list[sa.Row[Any]]]:
    """Return the running operations of each small app, and its last ended ones, newest first."""
    found: dict[int, list[sa.Row[Any]]] = defaultdict(list)
    for row in connection.execute(_runs_of(tuple(small_app_ids))):
        found[row.small_app_id].append(row)
    # Not by the statement: SQLite would look for what runs in the order of all that ran.
    for rows in found.values():
        rows.sort(key=attrgetter("recorded_at"), reverse=True)
    return found


# Watching a small app runs the same statements again and again.
@lru_cache(maxsize=64)
def _runs_of(small_app_ids: tuple[int, ...]) -> sa.CompoundSelect[Any]:
    parts = [part for id in small_app_ids for part in (_running_of(id), _last_ended_of(id))]
    return sa.union_all(*(sa.select(part.subquery()) for part in parts))


def _running_of(small_app_id: int) -> sa.Select[Any]:
    its_own = Scope(small_app_id).has_unindexed(operations.c.small_app_id)
    return sa.select(*_SHOWN).where(IS_RUNNING, its_own)


def _last_ended_of(small_app_id: int) -> sa.Select[Any]:
    of_app = sa.select(*_SHOWN).where(operations.c.small_app_id == small_app_id)
    ended = of_app.where(operations.c.state.in_(ENDED), operations.c.steps.is_not(None))
    return ended.order_by(operations.c.recorded_at.desc()).limit(MOST_SEEN)


def _running(found: Sequence[sa.Row[Any]]) -> sa.Row[Any] | None:
    """Return the operation that is changing the data; of several, one that blocks."""
    changing = [row for row in reversed(found) if row.is_blocking or _changes_data(row)]
    return next((row for row in changing if row.is_blocking), next(iter(changing), None))


def _blocks(row: sa.Row[Any], now: datetime, lease: timedelta) -> bool:
    # A heartbeat in the future comes from a clock that was ahead.
    is_blocking = row.state == OperationState.RUNNING and row.is_blocking
    return bool(is_blocking and abs(now - row.heartbeat_at) <= lease)


def _changes_data(row: sa.Row[Any]) -> bool:
    return any(one["name"] in CHANGING and one["state"] == "running" for one in row.steps or ())


def _step(row: sa.Row[Any]) -> dict[str, Any] | None:
    """Return the refresh step of an operation; None if it did not begin."""
    steps: Sequence[dict[str, Any]] = row.steps or ()
    return next((one for one in steps if one["name"] == STEP and one["state"] != "waiting"), None)


def _status(running: sa.Row[Any] | None, last: sa.Row[Any] | None, *, has_data: bool) -> str:
    if running is not None:
        return "running"
    if last is None:
        return "ready" if has_data else "empty"
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
    if last.state == OperationState.PARTIAL:
        # The operation's error also tells of its other steps.
        return text or None
    return last.error or text or None


def _data(connection: sa.Connection, small_app_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return when each small app refreshes next, the instant of its newest data, if it has any."""
    found: dict[int, dict[str, Any]] = {}
    rows = connection.execute(_data_of(tuple(small_app_ids))).mappings().all()
    for row in closing_rows(connection, rows):
        of_app = found.setdefault(
            row["small_app_id"],
            {
                "next_run_at": None,
                "data_updated_at": row["published"],
                "has_data": row["refreshed"],
            },
        )
        known = of_app["next_run_at"]
        # What is stored of those with calendars may lie before the first that they leave.
        is_earlier = row["document"] and (known is None or row["next_occurrence_at"] < known)
        if is_earlier and _refreshes(row["document"]):
            of_app["next_run_at"] = min(filter(None, (known, next_open(row))), default=None)
    return found


@lru_cache(maxsize=64)
def _data_of(small_app_ids: tuple[int, ...]) -> sa.Select[Any]:
    published = (
        sa.select(sa.func.max(snapshots.c.created_at))
        .join(domains, domains.c.production_id == snapshots.c.id)
        .where(domains.c.small_app_id == small_apps.c.id)
        .scalar_subquery()
    )
    refreshed = sa.exists().where(
        domains.c.small_app_id == small_apps.c.id, domains.c.refreshed_at.is_not(None)
    )
    refreshing = (
        sa.select(
            actions.c.small_app_id,
            actions.c.uid,
            sa.type_coerce(actions.c.plan, sa.Text).label("plan"),
            actions.c.document,
            action_cursor.c.next_occurrence_at,
        )
        .join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
        .where(actions.c.small_app_id.in_(small_app_ids))
        # Written exactly as in the index actions_refreshing.
        .where(sa.text(REFRESHING))
        # In words that no index has: by that of the active ones, SQLite would read each document.
        .where(sa.case((actions.c.active, 1)) == 1)
        .where(action_cursor.c.next_occurrence_at.is_not(None))
        .subquery()
    )
    at = refreshing.c.next_occurrence_at
    return (
        sa.select(
            small_apps.c.id.label("small_app_id"),
            published.label("published"),
            refreshed.label("refreshed"),
            refreshing.c.uid,
            refreshing.c.plan,
            refreshing.c.document,
            at,
        )
        .outerjoin(refreshing, refreshing.c.small_app_id == small_apps.c.id)
        .where(small_apps.c.id.in_(small_app_ids))
        .order_by(at)
    )


def _refreshes(document: str) -> bool:
    operations = document_in(document).get("operations")
    return isinstance(operations, dict) and bool(operations.get(STEP))
