"""What a verdict asks of the database: what waits for a reader, the readers, and single facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.operation import OperationState
from models.sql import database_now, dicts, in_literals
from models.store import celery_queues, key_values, pauses
from models.store.celery_queues import Watched
from models.store.conditions import IS_UNSTARTED
from models.store.pauses import Pause
from models.store.scope import Scope
from models.stored import document_in, instant_in
from models.tables import WANTS_MAIL, actions, notices, operations
from models.worker_kinds import OWN_TASKS, worker_kind_of
from runtime.plug_ins import added

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Known:
    """Single facts of an installation, at `now` by the database's clock."""

    now: datetime
    # The last tick's `now`; None without one.
    last_now: datetime | None
    pauses: tuple[Pause, ...]
    # Notices of the last day that could not be delivered.
    notices_failed: int
    # Whether an enabled action mails.
    wants_mail: bool
    # When the clock was last set back, and by how much; None for never.
    set_back: tuple[datetime, timedelta] | None
    # When an attempt last lacked its claim, and how; None for never.
    went_back: tuple[datetime, str] | None
    # The queues of the Celery application that actions send to.
    celery_queues: Mapping[str, Watched] = field(default_factory=dict)


def known(connection: sa.Connection) -> Known:
    """Return the single facts, by two statements."""
    failed = sa.select(sa.func.count()).where(
        notices.c.finished_at >= database_now(-DAY), notices.c.state == "failed"
    )
    # Each has an index of its own.
    mails = [
        sa.select(sa.literal(1)).where(sa.text(one), actions.c.active).limit(1).scalar_subquery()
        for one in (WANTS_MAIL, *added("mail_wanted"))
    ]
    query = sa.select(
        database_now(),
        key_values.value_query(key_values.LAST_NOW).scalar_subquery(),
        failed.scalar_subquery(),
        sa.func.coalesce(*mails, sa.null()),
        key_values.value_query(key_values.CLOCK_SET_BACK).scalar_subquery(),
        key_values.value_query(key_values.WENT_BACK).scalar_subquery(),
        key_values.value_query(key_values.CELERY_QUEUES).scalar_subquery(),
    )
    now, last_now, count, wants_mail, clock, lost, queues = connection.execute(query).one()
    noted = (key_values.set_back_in(clock), _went_back(lost), celery_queues.read(queues))
    in_force = pauses.in_force(connection)
    return Known(now, instant_in(last_now), in_force, count, wants_mail is not None, *noted)


def _went_back(stored: str | None) -> tuple[datetime, str] | None:
    known = document_in(stored or "{}")
    at = instant_in(known.get("at"))
    return None if at is None else (at, f"run {known.get('operation')} {known.get('how')}")


@dataclass(frozen=True, slots=True)
class Waiting:
    """The operations of a queue that some worker could start now."""

    # The name under which its readers listen, and whether these are known to us.
    queue: str
    is_known: bool
    count: int
    # When the longest waiting one was recorded.
    since: datetime


def waiting(connection: sa.Connection, scope: Scope, for_at_least: timedelta) -> list[Waiting]:
    """Return what waits for a worker for so long, by queue; what waits on purpose is left out.

    That is a retry in its backoff, what is paused, and what waits for another operation.
    """
    # The tasks of an application are many, and have one kind of worker.
    own = in_literals(operations.c.task, OWN_TASKS)
    task = sa.case((own, operations.c.task), else_="").label("task")
    is_unsent = in_literals(operations.c.state, {OperationState.PENDING}).label("is_unsent")
    grouped = (operations.c.queue, task, is_unsent)
    query = sa.select(
        *grouped,
        sa.func.count().label("count"),
        sa.func.min(operations.c.recorded_at).label("since"),
    ).where(
        IS_UNSTARTED,
        operations.c.waiting_for.is_(None),
        operations.c.recorded_at < database_now(-for_at_least),
        ~is_unsent | (operations.c.not_before <= database_now()),
        sa.not_(pauses.is_paused(operations.c)),
        scope.has(operations.c.small_app_id),
    )
    return [_waiting(row) for row in dicts(connection, query.group_by(*grouped)) if row["since"]]


def _waiting(row: dict[str, Any]) -> Waiting:
    worker_kind, queue = worker_kind_of(row["task"]), row["queue"]
    is_known = worker_kind.knows_readers(queue, is_sent=not row["is_unsent"])
    return Waiting(worker_kind.listed(queue), is_known, row["count"], row["since"])
