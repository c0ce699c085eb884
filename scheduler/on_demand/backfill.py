"""Backfill a range of an action's past, in batches of one transaction each.

A recorded batch survives the worker's death; the sweep lets another worker continue.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from broker.sending import Sent, send_backfills
from models.action.plan import Plan
from models.errors import Refused
from models.sql import read_clock
from models.store import audit
from models.store.actions import cursors
from models.store.operations import backfills, refusals
from models.store.tenants.closing import closing
from models.values import format_instant
from runtime.database import reading
from runtime.db_retry import in_transaction
from scheduler.kernel_release import hold_release
from scheduler.occurrence import next_occurrence, next_occurrences
from scheduler.on_demand.backfill_range import (
    BATCH,
    CALLED_OFF,
    SECOND,
    BackfillRequest,
    Share,
    check_range,
    sort_out,
)
from scheduler.on_demand.restart import runnable_plan


def rehearse(engine: sa.Engine, wanted: BackfillRequest, kept_for: timedelta) -> dict[str, Any]:
    """Return what a backfill would do as JSON, without storing it; raises Refused like `start`."""
    totals: dict[str, Any] = {"recorded": 0, "repeated": 0, "passed_over": 0}
    firsts: list[datetime] = []
    cursor: datetime | None = wanted.since
    with engine.begin() as connection:
        row = cursors.lock(connection, wanted.uid)
        plan = fillable_plan(connection, row)
        check_range(wanted, read_clock(connection), kept_for)
    # Counting may take a while: the action is not locked meanwhile.
    with reading(engine) as connection:
        while cursor is not None:
            some = next_occurrences(plan, wanted.uid, cursor, BATCH, wanted.last)
            share = share_of(connection, wanted, some, BATCH)
            firsts = firsts or some[:1]
            last = some[-1] if some else cursor
            totals |= {key: totals[key] + count for key, count in share.counts.items()}
            cursor = last if len(some) == BATCH else None
    if not firsts:
        raise _no_occurrence(row.name, plan, wanted)
    return totals | {"first": firsts[0], "last": last}


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
        row = cursors.lock(connection, wanted.uid)
        plan = fillable_plan(connection, row)
        check_range(wanted, read_clock(connection), kept_for)
        if not next_occurrences(plan, wanted.uid, wanted.since, 1, wanted.last):
            raise _no_occurrence(row.name, plan, wanted)
        ranged = {"since": wanted.since, "until": wanted.last, "mode": wanted.mode}
        whose = {"id": id, "small_app_id": row.small_app_id, "action_uid": wanted.uid}
        backfills.insert(connection, {**whose, **ranged, "actor": actor})
        _audit(connection, row, actor, "start", {"backfill": str(id), "mode": wanted.mode})
    return id, send_backfills(engine, [(id, 1)])


def fillable_plan(connection: sa.Connection, row: sa.Row[Any]) -> Plan:
    """Return the plan of a locked action, with its calendars; raises Refused or ValueError."""
    plan = closing(connection, runnable_plan(row), row.small_app_id)
    if row.event is not None:
        raise Refused(
            f"{row.name!r} is due on the event {row.event!r}, not by the clock; nothing to fill"
        )
    return plan


def cancel(engine: sa.Engine, uid: UUID, actor: str) -> tuple[list[UUID], int]:
    """Stop an action's active backfills; return their ids and the number of cancelled operations.

    Running operations go on. Raises Refused if no backfill is active.
    """

    def stop(connection: sa.Connection) -> tuple[list[UUID], int]:
        # In a backfill worker's order: the backfill first, then the action.
        stopped = backfills.cancel_active(connection, [uid], f"cancelled by {actor}")
        row = cursors.lock(connection, uid)
        if not stopped:
            raise Refused(f"{row.name!r} has no active backfill")
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


def _no_occurrence(name: str, plan: Plan, wanted: BackfillRequest) -> Refused:
    first, last = format_instant(wanted.first), format_instant(wanted.last)
    following = next_occurrence(plan, wanted.uid, wanted.last)
    hint = f"; its next one is {format_instant(following)}" if following else ""
    return Refused(f"{name!r} has no occurrence from {first} to {last}{hint}")


def share_of(
    connection: sa.Connection, wanted: BackfillRequest, occurrences: Sequence[datetime], most: int
) -> Share:
    if not occurrences:
        return Share()
    ends = occurrences[0] - SECOND, occurrences[-1]
    found = backfills.found_in(connection, wanted.uid, *ends)
    return sort_out(wanted.uid, occurrences, found, wanted.mode, most)
