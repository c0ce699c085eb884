"""Failures of a small app since an instant, by action."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState, StepState
from models.store.actions.missed import TIMES
from models.tables import actions, missed_spans, operations

# The newest ends that are searched for each action's last error.
MOST_READ = 500


@dataclass(frozen=True, slots=True)
class ActionFailures:
    """The failures of one action: counts, and the instant and error of the last."""

    action: str
    failed: int
    partial: int
    missed: int
    last_at: datetime
    error: str | None


def failures_since(
    connection: sa.Connection, small_app_id: int, since: datetime, but: UUID
) -> list[ActionFailures]:
    """Return the failures after `since`, the latest first; the operation `but` is ignored.

    Failed and partial operations count by their end, missed ones by their recording. Operations
    that a retry repaired do not count.
    """
    found: dict[UUID, dict[str, Any]] = {}
    ended = _counted(operations.c.finished_at, *_ended_after(small_app_id, since, but))
    singly = _counted(operations.c.recorded_at, *_missed_after(small_app_id, since))
    queries = (ended, singly, _in_spans(small_app_id, since))
    for row in chain.from_iterable(map(connection.execute, queries)):
        uid, name, state, count, last_at = tuple(row)
        one = found.setdefault(uid, {"action": name, "last_at": last_at, "error": None})
        one[state] = one.get(state, 0) + int(count)
        one["last_at"] = max(one["last_at"], last_at)
    for uid, error, steps in connection.execute(_errors(small_app_id, since, but)):
        if uid in found and found[uid]["error"] is None:
            found[uid]["error"] = error or _why_partial(steps or ())
    zeros = {"failed": 0, "partial": 0, "missed": 0}
    failures = [ActionFailures(**(zeros | one)) for one in found.values()]
    return sorted(failures, key=lambda one: (one.last_at, one.action), reverse=True)


def _ended_after(small_app_id: int, since: datetime, but: UUID) -> tuple[Any, ...]:
    return (
        operations.c.small_app_id == small_app_id,
        operations.c.finished_at > since,
        operations.c.state.in_([OperationState.FAILED, OperationState.PARTIAL]),
        operations.c.id != but,
    )


def _missed_after(small_app_id: int, since: datetime) -> tuple[Any, ...]:
    return (
        operations.c.small_app_id == small_app_id,
        operations.c.recorded_at > since,
        operations.c.state == OperationState.MISSED,
    )


def _counted(at: sa.Column[datetime], *where: Any) -> sa.Select[Any]:
    """Return the operations counted by action and state, each with the latest `at`."""
    columns = (actions.c.uid, actions.c.name, operations.c.state)
    query = sa.select(*columns, sa.func.count(), sa.func.max(at))
    joined = query.join_from(operations, actions, actions.c.uid == operations.c.action_uid)
    return joined.where(*where).group_by(*columns)


def _in_spans(small_app_id: int, since: datetime) -> sa.Select[Any]:
    where = (actions.c.small_app_id == small_app_id, missed_spans.c.recorded_at > since)
    state, last = sa.literal(OperationState.MISSED.value), sa.func.max(missed_spans.c.recorded_at)
    query = sa.select(actions.c.uid, actions.c.name, state, TIMES, last)
    joined = query.join_from(missed_spans, actions, actions.c.uid == missed_spans.c.action_uid)
    return joined.where(*where).group_by(actions.c.uid, actions.c.name)


def _errors(small_app_id: int, since: datetime, but: UUID) -> sa.Select[Any]:
    query = sa.select(operations.c.action_uid, operations.c.error, operations.c.steps)
    newest = query.where(*_ended_after(small_app_id, since, but))
    return newest.order_by(operations.c.finished_at.desc()).limit(MOST_READ)


def _why_partial(steps: Iterable[dict[str, Any]]) -> str | None:
    """Return the reason of the first partial step: failed domains, else its message, or None."""
    for step in steps:
        if step["state"] == StepState.PARTIAL:
            failed: dict[str, str] = (step.get("details") or {}).get("failed") or {}
            text = "; ".join(f"{name}: {error}" for name, error in failed.items())
            return text or step.get("message") or None
    return None
