"""Backfill a range of an action's past: one row, which a worker records in one transaction."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from broker.sending import Sent, send_backfills
from models.action.plan import Plan
from models.errors import Refused
from models.fingerprint import operation_id
from models.sql import read_clock
from models.store import audit, operations
from models.store.actions import cursors
from models.store.operations import backfills, refusals
from models.store.tenants.closing import closing
from runtime.db_retry import in_transaction
from scheduler.on_demand.backfill_range import (
    CALLED_OFF,
    BackfillRequest,
    Share,
    check_range,
    occurrences_in,
    sort_out,
)
from scheduler.on_demand.restart import runnable_plan
from scheduler.tz_release import hold_release


def rehearse(engine: sa.Engine, wanted: BackfillRequest, kept_for: timedelta) -> dict[str, Any]:
    """Return what a backfill would do as JSON, without storing it; raises Refused like `start`."""
    with engine.begin() as connection:
        _, occurrences = _checked(connection, wanted, kept_for)
        share = share_of(connection, wanted, occurrences)
    return {**share.counts, "first": occurrences[0], "last": occurrences[-1]}


def start(
    engine: sa.Engine, wanted: BackfillRequest, actor: str, kept_for: timedelta
) -> tuple[UUID, Sent]:
    """Store a backfill and send it to a worker; return its id.

    Raises Refused, with nothing stored, if the action cannot run or the range cannot be filled.
    If the broker is unavailable, the daemon sends it later.
    """
    id = uuid4()
    with engine.begin() as connection:
        hold_release(connection)
        row, _ = _checked(connection, wanted, kept_for)
        ranged = {"since": wanted.since, "until": wanted.last, "mode": wanted.mode}
        whose = {"id": id, "small_app_id": row.small_app_id, "action_uid": wanted.uid}
        backfills.insert(connection, {**whose, **ranged, "actor": actor})
        _audit(connection, row, actor, "start", {"backfill": str(id), "mode": wanted.mode})
    return id, send_backfills(engine, [id])


def _checked(
    connection: sa.Connection, wanted: BackfillRequest, kept_for: timedelta
) -> tuple[sa.Row[Any], list[datetime]]:
    """Return the action, locked, and the occurrences of a request; raises Refused."""
    row = cursors.lock(connection, wanted.uid)
    check_range(wanted, read_clock(connection), kept_for)
    return row, fillable(connection, row, wanted)[1]


def fillable(
    connection: sa.Connection, row: sa.Row[Any], wanted: BackfillRequest
) -> tuple[Plan, list[datetime]]:
    """Return the plan of a locked action, with its calendars, and its occurrences in a range.

    Raises Refused or ValueError.
    """
    plan = closing(connection, runnable_plan(row), row.small_app_id)
    if row.event is not None:
        raise Refused(
            f"{row.name!r} is due on the event {row.event!r}, not by the clock; nothing to fill"
        )
    return plan, occurrences_in(plan, wanted, row.name)


def share_of(
    connection: sa.Connection, wanted: BackfillRequest, occurrences: Sequence[datetime]
) -> Share:
    """Return which of a range's occurrences are recorded, repeated and passed over."""
    ids = [operation_id(wanted.uid, at) for at in occurrences]
    recorded = {row["id"]: row for row in operations.by_ids(connection, ids)}
    return sort_out(wanted.uid, occurrences, recorded, wanted.mode)


def cancel(engine: sa.Engine, uid: UUID, actor: str) -> tuple[list[UUID], int]:
    """Stop an action's backfills; return their ids and the number of cancelled operations.

    Running operations go on. Raises Refused if nothing is left to stop.
    """

    def stop(connection: sa.Connection) -> tuple[list[UUID], int]:
        reason = f"cancelled by {actor}"
        # In a backfill worker's order: the backfill first, then the action.
        stopped = backfills.cancel_active(connection, [uid], reason)
        row = cursors.lock(connection, uid)
        stopped += backfills.cancel_recorded(connection, uid, reason)
        if not stopped:
            raise Refused(f"{row.name!r} has no backfill with runs that have not started")
        count = sum(refusals.cancel_backfill(connection, uid, id, CALLED_OFF) for id in stopped)
        _audit(connection, row, actor, "cancel", {"backfills": [str(id) for id in stopped]})
        return stopped, count

    return in_transaction(engine, stop)


def _audit(
    connection: sa.Connection, row: sa.Row[Any], actor: str, verb: str, details: dict[str, Any]
) -> None:
    audit.write(
        connection,
        small_app_id=row.small_app_id,
        actor=actor,
        verb=f"backfill.{verb}",
        objects={str(row.action_uid): details},
    )
