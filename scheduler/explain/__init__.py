"""Explain from the tables why an action ran, or did not run, at any instant."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan, UnreadablePlan
from models.fingerprint import operation_id
from models.operation import ENDED, OperationState
from models.sql import read_clock
from models.store import pauses
from models.store.actions import explain_facts
from models.values import format_instant
from runtime.config import Settings, load_settings
from runtime.database import default_engine, reading
from scheduler.explain.explanation import (
    DELETED,
    NOT_AN_OCCURRENCE,
    QUARANTINED,
    Explanation,
    Question,
)
from scheduler.explain.of_events import of_event
from scheduler.explain.operation_text import ended, held, made_due, runs, waits
from scheduler.forecast import forecast
from scheduler.from_end import counted
from scheduler.occurrence import has_occurrence, is_known_to, neighbours

__all__ = ["Explanation", "explain", "waited_for"]


def explain(
    action: UUID,
    instant: datetime,
    connection: sa.Connection | None = None,
    settings: Settings | None = None,
    subject: str | None = None,
) -> Explanation:
    """Return the outcome of an action at an instant, cut to whole seconds, and the reason.

    Reads only the database: of `connection`, or of this process's settings. `subject` selects one
    user of an event action. Raises NotFound for an unknown action, ValueError for a naive instant.
    """
    if instant.tzinfo is None:
        raise ValueError(f"naive instant {instant!r}")
    if connection is None:
        with reading(default_engine()) as opened:
            return explain(action, instant, opened, settings, subject)
    settings = settings or load_settings()
    instant = instant.replace(microsecond=0)
    known = explain_facts.known(connection, action, instant, subject)
    asked = Question(connection, known, instant, read_clock(connection), settings, subject)
    return _recorded(asked) if known.recorded else _of_revision(asked)


def _recorded(asked: Question) -> Explanation:
    """Answer by the operations of that instant: the occurrence's first, then manual runs."""
    rows = sorted(asked.known.recorded, key=lambda row: not _is_due(asked, row))
    found = tuple(_shown(asked, row) for row in rows)
    if not _is_due(asked, rows[0]):
        # Only manual runs: the occurrence of that second has its own outcome.
        answer = _of_revision(asked)
        if answer.verdict != NOT_AN_OCCURRENCE:
            return replace(answer, operations=found)
    first, answer = found[0], asked.answer(found[0]["state"], found[0]["text"])
    return replace(answer, revision=first["revision"], operations=found)


def _is_due(asked: Question, row: sa.RowMapping) -> bool:
    """Return whether an operation belongs to the occurrence, not to a manual run."""
    return row["id"] == operation_id(asked.uid, asked.instant) or row["event_at"] is not None


def _shown(asked: Question, row: sa.RowMapping) -> dict[str, Any]:
    revision = asked.known.revision
    plan = None if revision is None else revision["plan"]
    watched = plan.watched if isinstance(plan, Plan) else None
    shown = {key: row[key] for key in ("id", "state", "subject", "triggerer", "revision")}
    return shown | {"text": _text(asked, row) + made_due(row, watched)}


def _text(asked: Question, row: sa.RowMapping) -> str:
    if row["state"] in ENDED:
        return ended(row)
    if row["state"] == OperationState.RUNNING:
        return runs(row, asked.now, asked.settings.worker.lease)
    return waited_for(asked.connection, row, asked.settings)


def waited_for(connection: sa.Connection, row: Mapping[Any, Any], settings: Settings) -> str:
    """Return what an unstarted operation waits for."""
    pause = pauses.covering(connection, row["id"])
    if row["waiting_for"] is None and pause is not None:
        return held(pause)
    status, now = explain_facts.status(connection, settings.worker.lease), read_clock(connection)
    is_retry = row["attempt"] > 1
    error = explain_facts.last_error(connection, row["id"]) if is_retry else None
    return waits(row, status, now, error)


def _of_revision(asked: Question) -> Explanation:
    """Answer by the revision in force, for an instant without an operation."""
    action, revision = asked.known.action, asked.known.revision
    if revision is None:
        created = format_instant(action["created_at"])
        text = f"the action, created at {created}, was not in force yet"
        return asked.answer(NOT_AN_OCCURRENCE, text)
    plan, ended_at, deleted_at = revision["plan"], revision["ended_at"], action["deleted_at"]
    # If the clock went back after the deletion, the watermark lies before it.
    if deleted_at is not None and asked.instant > min(deleted_at, action["watermark"]):
        return asked.answer(DELETED, f"the action was deleted at {format_instant(deleted_at)}")
    if ended_at is not None and asked.instant > ended_at:
        text = f"nothing has been due since {format_instant(ended_at)}: {revision['end_reason']}"
        return asked.answer(QUARANTINED, text)
    if isinstance(plan, UnreadablePlan):
        text = f"the plan of revision {revision['number']} cannot be read: {plan.reason}"
        return asked.answer(QUARANTINED, text)
    return _by_the_clock(asked, plan) if plan.on_event is None else of_event(asked, plan)


def _by_the_clock(asked: Question, plan: Plan) -> Explanation:
    plan = asked.closing(counted(asked.connection, (plan, asked.uid), asked.now))
    if not has_occurrence(plan, asked.uid, asked.instant):
        return asked.answer(NOT_AN_OCCURRENCE, _why_not_named(asked, plan))
    if not plan.active:
        return asked.paused()
    if asked.instant <= asked.known.action["watermark"]:
        return asked.decided()
    foreseen = forecast(
        asked.connection, asked.state(plan), asked.known.action["watermark"], asked.now
    )
    decision = next((one for one in foreseen if asked.instant <= one.watermark), None)
    return asked.not_decided(decision)


def _why_not_named(asked: Question, plan: Plan) -> str:
    """Return what keeps the rule from naming the instant, and its occurrences beside it."""

    def names_it(other: Plan) -> bool:
        return has_occurrence(other, asked.uid, asked.instant)

    if not is_known_to(plan, asked.instant):
        return "it lies outside the years 1970 to 2199, which cron rules know"
    if names_it(plan.with_policy(starts_at=None, ends_at=None)):
        return "the rule names it, but policy.starts_at or policy.ends_at leaves it out"
    if plan.closed and names_it(plan.without_exceptions()):
        return f"the rule names it, but `except` leaves it out: {_excepted(asked, plan)}"
    before, after = neighbours(plan, asked.uid, asked.instant)
    near = [
        f"{word} {format_instant(at)}"
        for word, at in (("the last before it is", before), ("the next is", after))
        if at is not None
    ]
    is_moved = names_it(plan.without_jitter())
    why = "names it, but its jitter moves it" if is_moved else "does not name this instant"
    return f"the rule {why}: {'; '.join(near) or 'no other is known'}"


def _excepted(asked: Question, plan: Plan) -> str:
    closed = (
        one.closed.blackout.at(one.named_for(asked.uid, asked.instant)).closed
        for one in plan.rules
        if one.closed is not None
    )
    return ", ".join(dict.fromkeys(name for name in closed if name is not None))
