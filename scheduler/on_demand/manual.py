"""Run one action, or all actions, on request."""

from collections.abc import Collection
from dataclasses import dataclass
from secrets import token_hex
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import Sent, send_reserved
from models.action.plan import Plan
from models.errors import Hint, NotFound, Refused
from models.fingerprint import fingerprint, keyed_run_id, str_to_uuid
from models.operation import Cause, by_person
from models.sql import read_clock
from models.store import actions, audit, operations
from models.store.actions import cursors
from models.store.operations.record import record_new, recorded_among
from models.store.operations.reserve import Message
from models.store.people import users
from runtime.database import reading
from scheduler.changes.revisions import action_ref
from scheduler.on_demand.restart import runnable_plan
from scheduler.record import operation_row


@dataclass(frozen=True, slots=True)
class RequestedRun:
    """One action of a run of all: its operation, or why it was refused."""

    uid: UUID
    name: str
    operation_id: UUID | None
    refused: str = ""


def run_now(
    engine: sa.Engine,
    uid: UUID,
    actor: str,
    subject: str | None = None,
    key: str | None = None,
    notify: bool | None = None,
) -> tuple[UUID, Sent]:
    """Record a manual operation of an action and send it; return its id and what was sent.

    `subject` is the user of an event action. `notify` decides about the mail that a step leaves to
    the caller; None leaves it to the action. Raises Refused, with nothing recorded, if the action
    is paused, quarantined or already active, and NotFound for an unknown user. If the broker is
    unavailable, the operation stays pending and the daemon sends it. Requests with the same `key`
    run the action once: the later ones get the operation of the first.
    """
    id, message = _record(engine, uid, actor, subject, key, notify)
    return id, send_reserved(engine, [] if message is None else [message])


def run_all(
    engine: sa.Engine,
    actor: str,
    small_app_id: int | None = None,
    among: Collection[UUID] | None = None,
) -> tuple[list[RequestedRun], Sent]:
    """Record a manual operation of each active action of a small app, or of all, and send them.

    With `among`, of these alone. Each is recorded separately: a refusal stops no other. Event
    actions are left out: they need a user.
    """
    with reading(engine) as connection:
        rows = actions.listed(connection, small_app_id)
    asked: list[RequestedRun] = []
    messages: list[Message] = []
    for row in rows:
        is_chosen = among is None or row["uid"] in among
        if not (is_chosen and row["active"] and row["event"] is None):
            continue
        uid, name = row["uid"], row["name"]
        try:
            id, message = _record(engine, uid, actor)
        except Refused as error:
            asked.append(RequestedRun(uid, name, None, error.fact))
            continue
        asked.append(RequestedRun(uid, name, id))
        messages += [] if message is None else [message]
    return asked, send_reserved(engine, messages)


def _record(
    engine: sa.Engine,
    uid: UUID,
    actor: str,
    subject: str | None = None,
    key: str | None = None,
    notify: bool | None = None,
) -> tuple[UUID, Message | None]:
    """Record a manual operation, reserved for the caller; return its id and its message.

    None for an operation that an earlier request of this `key` recorded.
    """
    with engine.begin() as connection:
        row = cursors.lock(connection, uid)
        keyed = None if key is None else keyed_run_id(uid, key)
        if keyed is not None and recorded_among(connection, [keyed]):
            return keyed, None
        plan = _runnable_plan(connection, row)
        now = read_clock(connection).replace(microsecond=0)
        _check_subject(connection, row, plan, subject)
        id = keyed or str_to_uuid(fingerprint(uid, now, subject=subject, manual=token_hex(8)))
        operation = operation_row(action_ref(row), plan, id, now, by_person(Cause.MANUAL, actor))
        operation["notify"] = notify
        if subject is not None:
            operation |= {"subject": subject, "overlap_key": None}
        record_new(connection, [operation])
        audit.write(
            connection,
            small_app_id=row.small_app_id,
            actor=actor,
            verb="action.run",
            objects={str(uid): {"operation": str(id)}},
        )
    return id, Message(id, 1, operation["task"], operation["queue"])


def _runnable_plan(connection: sa.Connection, row: sa.Row[Any]) -> Plan:
    plan = runnable_plan(row)
    if plan.on_event is not None:
        # Operations about different users do not overlap.
        return plan
    active = operations.active_operations(connection, row.action_uid)
    if active and plan.policy.overlap != "allow":
        one = active[0]
        raise Refused(f"{row.name!r} is already active: run {one['id']} is {one['state']}")
    return plan


def _check_subject(
    connection: sa.Connection, row: sa.Row[Any], plan: Plan, subject: str | None
) -> None:
    """Refuse an event action without a user, and any other action with one."""
    rule = plan.on_event
    if rule is None:
        if subject is not None:
            raise Refused(
                f"{row.name!r} is not due on events",
                Hint("run it without --user", "run it without a user", "send no user"),
            )
        return
    if subject is None and rule.watched is not None:
        # Whether it is about a user depends on the operation that ended.
        return
    if subject is None:
        raise Refused(
            f"{row.name!r} is due on {rule.event} and needs a user",
            Hint(
                "add --user USER",
                "run it by the command line or the API, which take one",
                "send the id of one as user",
            ),
        )
    user = users.find(connection, row.small_app_id, subject)
    if user is None:
        raise NotFound(f"no user is named {subject!r}", Hint("see `minutebook user list`"))
    if not plan.counts(user):
        raise Refused(f"the recipients of {row.name!r} exclude {subject!r}; choose another user")
