"""What is held in an installation: such operations are recorded, and sent when the hold ends.

An operation that is to be sent waits until the end, by its `not_before`. What a broker already has
may still start; jobs that no worker took yet wait, too.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from models.carriers import AT_APPLICATION, HTTP, OURS, OWN_TASKS, application_in, carrier_of
from models.operation import OperationState
from models.sql import database_now, is_among, read_clock, stands_in
from models.store import facts, quiet
from models.store.conditions import IS_UNSTARTED
from models.store.operations.move import move
from models.store.operations.outbox import Message, hold_back
from models.stored import document_in, instant_in
from models.tables import operations
from models.values import format_instant

KEY = "holds"
# Until when what has no end is held.
WITHOUT_END = datetime(9999, 1, 1, tzinfo=UTC)


class HoldKind(StrEnum):
    """What can be held."""

    QUEUE = "queue"
    APPLICATION = "application"
    SMALL_APP = "small app"


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold until an instant. A queue has the name that it has where all carriers' are listed."""

    kind: HoldKind
    name: str
    since: datetime
    until: datetime
    by: str
    small_app_id: int | None = None

    @property
    def ends_at(self) -> datetime | None:
        """When it ends; None if somebody must end it."""
        return None if self.until == WITHOUT_END else self.until

    @property
    def named(self) -> str:
        """How commands name it: `@crm` is an application, which the names of its queues end in."""
        return AT_APPLICATION + self.name if self.kind is HoldKind.APPLICATION else self.name

    @property
    def key(self) -> tuple[HoldKind, str]:
        """What tells it from the others."""
        return self.kind, self.name

    def holds(self, task: str, queue: str, small_app_id: int | None) -> bool:
        """Return whether operations of a task, a queue and a small app are held."""
        match self.kind:
            case HoldKind.QUEUE:
                return carrier_of(task).listed(queue) == self.name
            case HoldKind.APPLICATION:
                return not carrier_of(task).tasks and application_in(queue) == self.name
            case HoldKind.SMALL_APP:
                return small_app_id == self.small_app_id


def lasting(held: Iterable[Hold], now: datetime) -> tuple[Hold, ...]:
    """Return the holds that have not ended."""
    return tuple(one for one in held if one.until > now)


def lately(held: Iterable[Hold], now: datetime, within: timedelta) -> tuple[Hold, ...]:
    """Return the holds that have not ended, or did so within that span."""
    return tuple(one for one in held if now - one.until < within)


def in_text(text: str | None) -> tuple[Hold, ...]:
    """Return stored holds; what cannot be read is none."""
    listed = document_in(text).get("holds") if text else None
    found = (_hold(one) for one in (listed if isinstance(listed, list) else ()))
    return tuple(one for one in found if one is not None)


def as_text(held: Iterable[Hold]) -> str:
    """Return holds in the form in which they are stored."""
    return json.dumps({"holds": [_document(one) for one in held]})


def _document(one: Hold) -> dict[str, Any]:
    ends = {"since": format_instant(one.since), "until": format_instant(one.until)}
    its = {"kind": one.kind, "name": one.name, "by": one.by, "small_app_id": one.small_app_id}
    return its | ends


def _hold(stored: Any) -> Hold | None:
    try:
        since, until = instant_in(stored["since"]), instant_in(stored["until"])
        its = (HoldKind(stored["kind"]), str(stored["name"]))
        by, app = str(stored["by"]), stored["small_app_id"]
    except (KeyError, TypeError, ValueError):
        return None
    return None if since is None or until is None else Hold(*its, since, until, by, app)


def read(connection: sa.Connection) -> tuple[datetime, datetime | None, tuple[Hold, ...]]:
    """Return the database's clock, the end of the last quiet period, and holds, also ended ones."""
    period, held = (facts.fact_query(key).scalar_subquery() for key in (quiet.KEY, KEY))
    now, ends_at, text = connection.execute(sa.select(database_now(), period, held)).one()
    return now, instant_in(ends_at), in_text(text)


def in_force(connection: sa.Connection) -> tuple[datetime | None, tuple[Hold, ...]]:
    """Return the end of the quiet period, None without one, and what is held, by one statement."""
    now, until, held = read(connection)
    return (until if until is not None and until > now else None), lasting(held, now)


def begin(connection: sa.Connection, hold: Hold) -> Hold | None:
    """Hold something, or move its end; return its hold before, None if it was not held."""
    others, before = _locked(connection, hold)
    if before is not None:
        _move(connection, before, hold.until)
    _keep_jobs_back(connection, hold)
    facts.set_fact(connection, KEY, as_text([*others, hold]))
    return before


def end(connection: sa.Connection, hold: Hold) -> Hold | None:
    """End a hold: the next tick sends what waited. Return it, None if it was not held."""
    others, before = _locked(connection, hold)
    if before is None:
        return None
    now = read_clock(connection).replace(microsecond=0)
    _move(connection, before, now)
    # It is kept for a while: what waited is not overdue at once.
    facts.set_fact(connection, KEY, as_text([*others, replace(before, until=now)]))
    return before


def _locked(connection: sa.Connection, hold: Hold) -> tuple[list[Hold], Hold | None]:
    """Return the other holds and this one as it lasts; nobody else changes them meanwhile."""
    # The row must be there to be locked.
    facts.move_fact(connection, KEY, None, as_text([]))
    held = in_text(facts.hold_fact(connection, KEY))
    others = [one for one in held if one.key != hold.key]
    its = lasting((one for one in held if one.key == hold.key), read_clock(connection))
    return others, next(iter(its), None)


def put_off(connection: sa.Connection, messages: Sequence[Message]) -> Sequence[Message]:
    """Let reserved operations that are held wait for the ends; return the others, in their order.

    Asked under a lock, so that no hold ends or moves in between.
    """
    facts.hold_facts(connection, (KEY, quiet.KEY))
    until, held = in_force(connection)
    if until is not None:
        hold_back(connection, messages, until)
        return ()
    apps = _apps_of(connection, messages, held)
    left: list[Message] = []
    waiting: dict[datetime, list[Message]] = {}
    for one in messages:
        ends = [hold.until for hold in held if hold.holds(one.task, one.queue, apps.get(one.id))]
        (waiting.setdefault(max(ends), []) if ends else left).append(one)
    for ends_at, some in waiting.items():
        hold_back(connection, some, ends_at)
    return left


def _apps_of(
    connection: sa.Connection, messages: Sequence[Message], held: Iterable[Hold]
) -> dict[Any, int]:
    """Return the small apps of operations, if some small app is held."""
    if not any(one.kind is HoldKind.SMALL_APP for one in held):
        return {}
    its_id = is_among(connection, operations.c.id, [one.id for one in messages])
    rows = connection.execute(sa.select(operations.c.id, operations.c.small_app_id).where(its_id))
    return {row.id: row.small_app_id for row in rows}


def waiting(connection: sa.Connection, hold: Hold) -> int:
    """Return how many operations wait for the end of a hold."""
    count = sa.select(sa.func.count()).where(*_waits(hold))
    return connection.execute(count).scalar_one()


def none_of(held: Collection[Hold]) -> sa.ColumnElement[bool]:
    """Return the condition that nothing holds an operation."""
    return sa.and_(sa.true(), *(sa.not_(_its(hold)) for hold in held))


def _move(connection: sa.Connection, hold: Hold, at: datetime) -> None:
    """Let what waits for the end of a hold wait for `at`."""
    connection.execute(sa.update(operations).where(*_waits(hold)).values(not_before=at))


def _waits(hold: Hold) -> tuple[sa.ColumnElement[bool], ...]:
    return IS_UNSTARTED, operations.c.not_before == hold.until, _its(hold)


def _keep_jobs_back(connection: sa.Connection, hold: Hold) -> None:
    """Take back jobs that are offered: their queue is this database."""
    offered = (
        stands_in(operations.c.task, HTTP.tasks),
        operations.c.waiting_for.is_(None),
        IS_UNSTARTED,
        _its(hold),
    )
    since = {OperationState.QUEUED}
    connection.execute(
        move(
            OperationState.PENDING,
            *offered,
            since=since,
            not_before=hold.until,
            attempt=operations.c.attempt,
        )
    )


def _its(hold: Hold) -> sa.ColumnElement[bool]:
    """Return the condition that a hold concerns an operation: `Hold.holds`, for the database."""
    queue, of_application = operations.c.queue, operations.c.task.not_in(sorted(OWN_TASKS))
    if hold.kind is HoldKind.SMALL_APP:
        return operations.c.small_app_id == hold.small_app_id
    if hold.kind is HoldKind.APPLICATION:
        ends = queue.endswith(AT_APPLICATION + hold.name, autoescape=True)
        return sa.and_(of_application, ends)
    # The longer prefix first: that of jobs begins with ours.
    for carrier in (HTTP, OURS):
        if hold.name.startswith(carrier.prefix):
            its_queue = queue == hold.name.removeprefix(carrier.prefix)
            return sa.and_(stands_in(operations.c.task, carrier.tasks), its_queue)
    return sa.and_(of_application, queue == hold.name)
