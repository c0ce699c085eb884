"""What kept unstarted operations from starting: outages, pauses, and the runs before them."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.notices import FindingKind
from models.operation import OperationState
from models.sql import read_clock
from models.store import pauses, workers
from models.store.actions.downtime import stored_span
from models.store.conditions import IS_RUNNING
from models.tables import actions, attempts, findings, operations
from models.values import format_instant, instant_or_dash
from models.values.durations import lasting
from models.worker_kinds import CELERY, HTTP, worker_kind_of

# More pauses than these began after what is asked about was recorded only if people made them.
LATEST_PAUSES = 100
_NAMES = ("action_uid", "small_app_id", "queue", "task", "state", "waiting_for")
# What is asked of an operation: from when on it could have started, and by what way.
FACTS = (
    *(operations.c[name] for name in _NAMES),
    operations.c.recorded_at.label("since"),
)
_last_attempt = sa.select(sa.func.max(attempts.c.finished_at)).where(
    attempts.c.operation_id == operations.c.id
)
_AGAIN = sa.select(
    *FACTS[:-1],
    sa.func.coalesce(
        _last_attempt.scalar_subquery(),
        operations.c.recorded_at,
        type_=operations.c.recorded_at.type,
    ).label("since"),
)
_SHOWN = ("id", "action_uid", "small_app_id", "queue", "task", "started_at")
_RUNNING = (
    sa.select(*(operations.c[name] for name in _SHOWN))
    .add_columns(actions.c.name)
    .join(actions, actions.c.uid == operations.c.action_uid)
    .where(IS_RUNNING)
    .order_by(operations.c.started_at)
)
_OUTAGES = sa.select(findings).where(
    findings.c.kind.in_([FindingKind.BROKER_DOWN, FindingKind.APPLICATION_BROKER_DOWN])
)


class Causes:
    """What has lately kept operations from starting, as the database knows it now."""

    def __init__(self, connection: sa.Connection) -> None:
        self._listened = workers.listened_queues(connection, workers.GONE)
        self._now = read_clock(connection)
        self._pauses = pauses.listed(connection, LATEST_PAUSES)
        self._outages = connection.execute(_OUTAGES).all()
        self._downtime = stored_span(connection)
        # Those of each queue, the longest running first.
        self._running: dict[str, list[sa.Row[Any]]] = defaultdict(list)
        for row in connection.execute(_RUNNING):
            self._running[worker_kind_of(row.task).listed(row.queue)].append(row)

    def why(self, row: Mapping[Any, Any]) -> str | None:
        """Return what kept an operation with these FACTS from starting, if that is known."""
        queue = worker_kind_of(row["task"]).listed(row["queue"])
        is_unsent = row["state"] == OperationState.PENDING
        return (
            self._paused(row, queue, until=self._now)
            or (self._broker_down(row) if is_unsent else None)
            # It is so now, unlike a pause or an outage that has ended.
            or self._unheard(row, queue)
            or self._paused(row, queue, until=row["since"])
            or self._broker_down(row)
            or self._daemon_down(row)
            or self._behind(row, queue)
        )

    def _paused(self, row: Mapping[Any, Any], queue: str, until: datetime) -> str | None:
        """Return the pause that held it, one that lasted longer than `until`."""
        for one in self._pauses:
            end = one.ended_at or one.until
            is_its = one.target.covers(row["small_app_id"], queue)
            if is_its and (end is None or end > until):
                return f"{one.target.words} was paused {self._span(one.began_at, end)}"
        return None

    def _broker_down(self, row: Mapping[Any, Any]) -> str | None:
        worker_kind = worker_kind_of(row["task"])
        for one in () if worker_kind is HTTP else self._outages:
            is_its_own = one.kind == FindingKind.BROKER_DOWN or worker_kind is CELERY
            if is_its_own and (one.ended_at is None or one.ended_at > row["since"]):
                return f"the broker did not answer {self._span(one.began_at, one.ended_at)}"
        return None

    def _unheard(self, row: Mapping[Any, Any], queue: str) -> str | None:
        worker_kind, is_sent = worker_kind_of(row["task"]), row["state"] != OperationState.PENDING
        if queue in self._listened:
            return None
        if worker_kind is HTTP:
            return f"no worker asks for the jobs of queue {row['queue']}"
        is_known = worker_kind.knows_readers(row["queue"], is_sent=is_sent)
        return f"no worker listens to queue {row['queue']}" if is_known else None

    def _daemon_down(self, row: Mapping[Any, Any]) -> str | None:
        """Return the downtime in which no daemon sent it."""
        down = self._downtime
        if down is None or row["state"] != OperationState.PENDING:
            return None
        return down.text if down.since < self._now and row["since"] < down.until else None

    def _behind(self, row: Mapping[Any, Any], queue: str) -> str | None:
        """Return the run that it waited for: of its action, or of its queue."""
        if row["waiting_for"] is not None:
            return f"run {row['waiting_for']} was running"
        others = [one for one in self._running[queue] if one.action_uid != row["action_uid"]]
        if not others:
            return None
        first, what = others[0], "a run of another small app"
        if first.small_app_id == row["small_app_id"]:
            what = f'"{first.name}" ({first.id})'
        begin = instant_or_dash(first.started_at)
        return f"queue {row['queue']} was busy with {what} since {begin}"

    def _span(self, since: datetime, until: datetime | None) -> str:
        until = min(until or self._now, self._now)
        return f"from {format_instant(since)} to {format_instant(until)} ({lasting(until - since)})"


def with_cause(
    connection: sa.Connection, reason: str, id: UUID, causes: Causes | None = None
) -> str:
    """Return why an operation does not start, with what kept it since its last attempt, if any."""
    row = connection.execute(_AGAIN.where(operations.c.id == id)).mappings().one()
    return because(reason, (causes or Causes(connection)).why(row))


def because(reason: str, cause: str | None) -> str:
    """Return a reason with its cause, if that is known."""
    return reason if cause is None else f"{reason}: {cause}"
