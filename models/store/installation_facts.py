"""What a verdict asks of the database: what waits for a reader, the readers, and single facts."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from models.operation import OperationState
from models.sql import database_now, dicts, in_literals, in_unindexed, unindexed
from models.store import celery_queues, key_values, pauses
from models.store.celery_queues import Watched
from models.store.conditions import IS_LIVE, IS_UNSTARTED
from models.store.operations import gave_way
from models.store.pauses import Pause
from models.store.scope import Scope
from models.stored import document_in, instant_in
from models.tables import WANTS_MAIL, action_cursor, actions, notices, operations
from models.worker_kinds import OWN_TASKS, worker_kind_of
from runtime.plug_ins import added

DAY = timedelta(days=1)
# By the default of its sessions, or as a standby.
_READ_ONLY = """CASE WHEN pg_is_in_recovery() THEN 'standby'
    WHEN current_setting('default_transaction_read_only') = 'on' THEN 'setting' END"""


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
    # Why the database takes no changes: `standby`, `setting` or `file`; None if it does.
    read_only: str | None = None


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
        _read_only(connection),
    )
    row = connection.execute(query).one()
    now, last_now, count, wants_mail, clock, lost, queues, read_only = row
    return Known(
        now=now,
        last_now=instant_in(last_now),
        pauses=pauses.in_force(connection),
        notices_failed=count,
        wants_mail=wants_mail is not None,
        read_only=read_only,
        set_back=key_values.set_back_in(clock),
        went_back=_went_back(lost),
        celery_queues=celery_queues.read(queues),
    )


def _read_only(connection: sa.Connection) -> sa.ColumnElement[str | None]:
    """Return why a transaction could not write; the one that asks writes nothing."""
    if connection.dialect.name == "postgresql":
        return sa.literal_column(_READ_ONLY, sa.String)
    file = Path(str(connection.engine.url.database))
    is_read_only = file.exists() and not os.access(file, os.W_OK)
    return sa.literal("file" if is_read_only else None, sa.String)


def due(connection: sa.Connection, scope: Scope, most: int) -> int:
    """Return how many actions are due and not decided, at most so many: no daemon ticks."""
    is_due = (action_cursor.c.next_occurrence_at <= database_now(), IS_LIVE)
    its = sa.select(sa.literal(1)).join_from(
        action_cursor, actions, actions.c.uid == action_cursor.c.action_uid
    )
    found = its.where(*is_due, scope.has(actions.c.small_app_id)).limit(most).subquery()
    return int(connection.execute(sa.select(sa.func.count()).select_from(found)).scalar_one())


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
    is_unsent = in_literals(operations.c.state, {OperationState.PENDING})
    its_own = (
        IS_UNSTARTED,
        operations.c.waiting_for.is_(None),
        # Few wait: SQLite would read all that were ever recorded.
        unindexed(operations.c.recorded_at < database_now(-for_at_least)),
        ~is_unsent | (operations.c.not_before <= database_now()),
    )
    return _by_queue(connection, scope, is_unsent, its_own)


def overtaken(connection: sa.Connection, scope: Scope, within: timedelta) -> list[Waiting]:
    """Return what newer operations took the place of within so long, by queue; none waits still."""
    is_unsent = operations.c.sent_at.is_(None)
    its_own = (
        operations.c.finished_at >= database_now(-within),
        in_unindexed(operations.c.state, {OperationState.SKIPPED}),
        gave_way(operations.c),
    )
    return [replace(one, count=0) for one in _by_queue(connection, scope, is_unsent, its_own)]


def _by_queue(
    connection: sa.Connection,
    scope: Scope,
    is_unsent: sa.ColumnElement[bool],
    its_own: Iterable[sa.ColumnElement[bool]],
) -> list[Waiting]:
    # The tasks of an application are many, and have one kind of worker.
    own = in_literals(operations.c.task, OWN_TASKS)
    task = sa.case((own, operations.c.task), else_="").label("task")
    grouped = (operations.c.queue, task, is_unsent.label("is_unsent"))
    query = sa.select(
        *grouped,
        sa.func.count().label("count"),
        sa.func.min(operations.c.recorded_at).label("since"),
    ).where(
        *its_own,
        sa.not_(pauses.is_paused(operations.c)),
        scope.has_unindexed(operations.c.small_app_id),
    )
    return [_waiting(row) for row in dicts(connection, query.group_by(*grouped)) if row["since"]]


def _waiting(row: dict[str, Any]) -> Waiting:
    worker_kind, queue = worker_kind_of(row["task"]), row["queue"]
    is_known = worker_kind.knows_readers(queue, is_sent=not row["is_unsent"])
    return Waiting(worker_kind.listed(queue), is_known, row["count"], row["since"])
