"""What went wrong in a small app since an instant, by action."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState, StepState
from models.tables import actions, missed_spans, operations

# So many of the newest ends are looked through for each action's last error.
MOST_READ = 500


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong with one action: counts, and when and why for the last time."""

    action: str
    failed: int
    partial: int
    missed: int
    last_at: datetime
    error: str | None


def troubles_since(
    connection: sa.Connection, small_app_id: int, since: datetime, but: UUID
) -> list[Trouble]:
    """Return the troubles after `since`, the latest first; the operation `but` is passed over.

    Failed and partial operations count by their end, missed ones by when they were recorded. What
    a retry or a rerun made good is no trouble any more.
    """
    found: dict[UUID, dict[str, Any]] = {}
    queries = (
        _ended(small_app_id, since, but), _missed(small_app_id, since),
        _spans(small_app_id, since),
    )  # fmt: skip
    for row in _rows(connection, queries):
        uid, name, state, count, last_at = tuple(row)
        one = found.setdefault(uid, {"action": name, "last_at": last_at, "error": None})
        one[state] = one.get(state, 0) + int(count)
        one["last_at"] = max(one["last_at"], last_at)
    for uid, error, steps in connection.execute(_errors(small_app_id, since, but)):
        if uid in found and found[uid]["error"] is None:
            found[uid]["error"] = error or _why_partial(steps or ())
    zeros = {"failed": 0, "partial": 0, "missed": 0}
    troubles = [Trouble(**(zeros | one)) for one in found.values()]
    return sorted(troubles, key=lambda one: (one.last_at, one.action), reverse=True)


def _rows(connection: sa.Connection, queries: Iterable[sa.Select[Any]]) -> Iterable[sa.Row[Any]]:
    for query in queries:
        yield from connection.execute(query)


def _ended_after(small_app_id: int, since: datetime, but: UUID) -> tuple[Any, ...]:
    return (
        operations.c.small_app_id == small_app_id,
        operations.c.finished_at > since,
        operations.c.state.in_([OperationState.FAILED, OperationState.PARTIAL]),
        operations.c.id != but,
    )


def _ended(small_app_id: int, since: datetime, but: UUID) -> sa.Select[Any]:
    columns = (actions.c.uid, actions.c.name, operations.c.state)
    query = sa.select(*columns, sa.func.count(), sa.func.max(operations.c.finished_at))
    joined = query.join_from(operations, actions, actions.c.uid == operations.c.action_uid)
    return joined.where(*_ended_after(small_app_id, since, but)).group_by(*columns)


def _missed(small_app_id: int, since: datetime) -> sa.Select[Any]:
    columns = (actions.c.uid, actions.c.name, operations.c.state)
    query = sa.select(*columns, sa.func.count(), sa.func.max(operations.c.recorded_at))
    joined = query.join_from(operations, actions, actions.c.uid == operations.c.action_uid)
    return joined.where(
        operations.c.small_app_id == small_app_id,
        operations.c.recorded_at > since,
        operations.c.state == OperationState.MISSED,
    ).group_by(*columns)


def _spans(small_app_id: int, since: datetime) -> sa.Select[Any]:
    columns = (actions.c.uid, actions.c.name)
    state = sa.literal(OperationState.MISSED.value)
    query = sa.select(
        *columns, state, sa.func.sum(missed_spans.c.count), sa.func.max(missed_spans.c.recorded_at)
    )
    joined = query.join_from(missed_spans, actions, actions.c.uid == missed_spans.c.action_uid)
    mine = (actions.c.small_app_id == small_app_id, missed_spans.c.recorded_at > since)
    return joined.where(*mine).group_by(*columns)


def _errors(small_app_id: int, since: datetime, but: UUID) -> sa.Select[Any]:
    query = sa.select(operations.c.action_uid, operations.c.error, operations.c.steps)
    newest = query.where(*_ended_after(small_app_id, since, but))
    return newest.order_by(operations.c.finished_at.desc()).limit(MOST_READ)


def _why_partial(steps: Iterable[dict[str, Any]]) -> str | None:
    """Return why a step was partial: the domains that failed, else what it said; None for none."""
    for step in steps:
        if step["state"] == StepState.PARTIAL:
            failed: dict[str, str] = (step.get("details") or {}).get("failed") or {}
            told = "; ".join(f"{name}: {text}" for name, text in failed.items())
            return told or step.get("message") or None
    return None
