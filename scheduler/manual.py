"""Run an action now, because somebody asked."""

from secrets import token_hex
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import Refused
from models.plan import Plan
from models.sql import read_clock
from models.store import actions, cursors, operations
from models.store.outbox import Message
from scheduler.fingerprint import fingerprint, str_to_uuid
from scheduler.record import operation_row
from scheduler.revise import subject_of
from tasks.sending import Sent, send_reserved


def run_now(engine: sa.Engine, uid: UUID, actor: str) -> tuple[UUID, Sent]:
    """Record a manual operation of an action and send it; return its id and what was sent.

    Raises Refused, with nothing recorded, when the action is paused, set aside or already active.
    When the broker is away the operation stays pending and the daemon sends it.
    """
    with engine.begin() as connection:
        row = cursors.lock(connection, uid)
        plan = _runnable_plan(connection, row)
        now = read_clock(connection).replace(microsecond=0)
        id = str_to_uuid(fingerprint(uid, now, manual=token_hex(8)))
        operation = operation_row(subject_of(row), plan, id, now, f"Manual run by {actor}")
        operations.record(connection, [operation])
        actions.write_audit(
            connection,
            small_app_id=row.small_app_id,
            actor=actor,
            verb="action.run",
            objects={str(uid): {"operation": str(id)}},
        )
    return id, send_reserved(engine, [Message(id, 1, operation["task"], operation["queue"])])


def _runnable_plan(connection: sa.Connection, row: sa.Row[Any]) -> Plan:
    if row.deleted_at is not None:
        raise Refused(f"{row.name!r} was deleted")
    if row.set_aside is not None:
        raise Refused(f"{row.name!r} is set aside: {row.set_aside}; correct its document")
    plan = Plan.from_json(row.plan)
    if not plan.active:
        raise Refused(f"{row.name!r} is paused; run `minutehand action resume` first")
    active = operations.active_operations(connection, row.action_uid)
    if active and plan.overlap != "allow":
        one = active[0]
        raise Refused(f"{row.name!r} is already active: operation {one['id']} is {one['state']}")
    return plan
