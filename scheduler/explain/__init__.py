"""Explain from the tables why an action ran, or did not run, at any instant."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan, UnreadablePlan
from models.action.rules import CronModel
from models.action.schedule import ONE_SECOND
from models.fingerprint import operation_id
from models.operation import ENDED, OperationState
from models.sql import read_clock
from models.store import pauses
from models.store.actions import explain_facts
from models.values import format_instant, instant_or_dash
from runtime.config import Settings, load_settings
from runtime.database import default_engine, reading
from scheduler.decision import missed_reason
from scheduler.explain.explanation import (
    DELETED,
    NOT_AN_OCCURRENCE,
    NOT_DUE_YET,
    QUARANTINED,
    UNDECIDED,
    Explanation,
    Question,
    in_span,
    paused,
    span_in_words,
    without_record,
)
from scheduler.explain.of_events import of_event
from scheduler.explain.operation_text import ended, held, made_due, runs, sends_again, waits
from scheduler.forecast import forecast
from scheduler.from_end import counted
from scheduler.missed import reason_within
from scheduler.occurrence import get_cron_last_occurrence, has_occurrence, is_known_to, neighbours

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
    first, action = found[0], asked.known.action
    return Explanation(
        action["name"], action["uid"], asked.instant, first["state"], first["text"],
        first["revision"], found,
    )  # fmt: skip


def _is_due(asked: Question, row: sa.RowMapping) -> bool:
    """Return whether an operation belongs to the occurrence, not to a manual run."""
    its_own = operation_id(asked.known.action["uid"], asked.instant)
    return row["id"] == its_own or row["event_at"] is not None


def _shown(asked: Question, row: sa.RowMapping) -> dict[str, Any]:
    shown = {key: row[key] for key in ("id", "state", "subject", "triggerer", "revision")}
    return shown | {"text": _text(asked, row) + made_due(row, _watched(asked))}


def _watched(asked: Question) -> str | None:
    revision = asked.known.revision
    plan = None if revision is None else revision["plan"]
    return plan.watched if isinstance(plan, Plan) else None


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
    gone = _gone(asked, revision)
    if gone is not None:
        return gone
    plan = revision["plan"]
    if isinstance(plan, UnreadablePlan):
        text = f"the plan of revision {revision['number']} cannot be read: {plan.reason}"
        return asked.answer(QUARANTINED, text)
    return _of_plan(asked, plan)


def _of_plan(asked: Question, plan: Plan) -> Explanation:
    if plan.on_event is not None:
        return of_event(asked, plan)
    counting = counted(asked.connection, (plan, asked.known.action["uid"]), asked.now)
    plan = asked.closing(counting)
    if not _counts(asked, plan):
        return asked.answer(NOT_AN_OCCURRENCE, _nearest(plan, asked))
    if not plan.active:
        return paused(asked)
    is_decided = asked.instant <= asked.known.action["watermark"]
    return _decided(asked) if is_decided else _not_decided(plan, asked)


def _gone(asked: Question, revision: sa.RowMapping) -> Explanation | None:
    """Answer for an instant at which the action was deleted or quarantined; else None."""
    deleted_at, ended_at = asked.known.action["deleted_at"], revision["ended_at"]
    # If the clock went back after the deletion, the watermark lies before it.
    gone_at = min(deleted_at or asked.now, asked.known.action["watermark"])
    if deleted_at is not None and asked.instant > gone_at:
        return asked.answer(DELETED, f"the action was deleted at {format_instant(deleted_at)}")
    if ended_at is not None and asked.instant > ended_at:
        text = f"nothing has been due since {format_instant(ended_at)}: {revision['end_reason']}"
        return asked.answer(QUARANTINED, text)
    return None


def _decided(asked: Question) -> Explanation:
    """Answer for a decided occurrence without an operation."""
    span = asked.known.span
    plan = None if span is None else span["plan"]
    plan = asked.closing(plan) if isinstance(plan, Plan) else plan
    if span is None or (isinstance(plan, Plan) and not _counts(asked, plan)):
        return without_record(asked)
    return in_span(asked, span, _reason(asked, span, plan))


def _counts(asked: Question, plan: Plan) -> bool:
    return has_occurrence(plan, asked.known.action["uid"], asked.instant)


def _reason(asked: Question, span: sa.RowMapping, plan: object) -> str:
    decided_at = span["decided_at"]
    # What was missed was decided later: any other instant is rubbish.
    if not isinstance(plan, Plan) or decided_at is None or decided_at < asked.instant:
        return str(span["reason"])
    reason = missed_reason(plan, asked.known.action["uid"], asked.instant, decided_at)
    return reason_within(str(span["reason"]), reason)


def _not_decided(plan: Plan, asked: Question) -> Explanation:
    """Answer for an occurrence that the next tick decides."""
    instant = asked.instant
    if instant > asked.now:
        return asked.answer(NOT_DUE_YET, f"due in {span_in_words(instant - asked.now)}")
    since = asked.known.action["watermark"]
    foreseen = forecast(asked.connection, asked.state(plan), since, asked.now)
    decision = next((one for one in foreseen if instant <= one.watermark), None)
    is_due = decision is not None and instant in decision.due_at
    uid = asked.known.action["uid"]
    reason = None if is_due else missed_reason(plan, uid, instant, asked.now)
    fate = "is due and would be sent" if reason is None else f"would be missed ({reason})"
    return asked.answer(UNDECIDED, f"{fate}: {sends_again(asked.status())}")


def _nearest(plan: Plan, asked: Question) -> str:
    if not is_known_to(plan, asked.instant):
        return "it lies outside the years 1970 to 2199, which cron rules know"
    if not plan.policy.is_within(asked.instant) and _counts(
        asked, plan.with_policy(starts_at=None, ends_at=None)
    ):
        return _bounds(plan, asked.instant)
    if plan.closed and _counts(asked, plan.without_exceptions()):
        return f"the rule names it, but `except` leaves it out: {_excepted(plan, asked)}"
    if plan.from_end is not None:
        return _from_end(plan, asked)
    before, after = neighbours(plan, asked.known.action["uid"], asked.instant)
    near = [
        f"{word} {format_instant(at)}"
        for word, at in (("the last before it is", before), ("the next is", after))
        if at is not None
    ]
    found = "; ".join(near) or "the rule has no occurrence"
    if _counts(asked, plan.without_jitter()):
        return f"the rule names it, but its jitter moves it: {found}"
    zones = sorted({one.zone for one in plan.rules if one.zone is not None})
    named = f"{found}{_zones(zones, asked.instant)}{_meant_utc(plan, asked.instant)}"
    return f"the rule does not name this instant: {named}"


def _from_end(plan: Plan, asked: Question) -> str:
    """Return when an interval from the end is due next: unknown while an operation goes on."""
    counts = "it counts from the end of the last run"
    at = plan.schedule(asked.known.action["uid"]).next(asked.known.action["watermark"])
    if at is None:
        return f"{counts}, and one has not ended, so the next is not known"
    return f"{counts}; the next is {format_instant(at)}"


def _excepted(plan: Plan, asked: Question) -> str:
    uid = asked.known.action["uid"]
    closed = (
        one.closed.blackout.at(one.named_for(uid, asked.instant)).closed
        for one in plan.rules
        if one.closed is not None
    )
    return ", ".join(dict.fromkeys(name for name in closed if name is not None))


def _bounds(plan: Plan, instant: datetime) -> str:
    """Return the bound of the action that excludes an instant its rule names."""
    if plan.policy.starts_at is not None and instant < plan.policy.starts_at:
        return f"the rule names it, but policy.starts_at is {format_instant(plan.policy.starts_at)}"
    return f"the rule names it, but policy.ends_at is {instant_or_dash(plan.policy.ends_at)}"


def _meant_utc(plan: Plan, instant: datetime) -> str:
    """Return whether one of the cron rules names an instant in UTC, and not in its own zone."""
    names_it = any(
        get_cron_last_occurrence(one.cron_rule, "UTC", instant, ONE_SECOND)
        for one in plan.rules
        if isinstance(one, CronModel)
    )
    return '; with `"timezone": "UTC"` it would' if names_it else ""


def _zones(zones: list[str], instant: datetime) -> str:
    """Return the wall-clock time of an instant in each of the rule's zones."""
    from zoneinfo import ZoneInfo

    shown = [
        f"{instant.astimezone(ZoneInfo(zone)).strftime('%a %Y-%m-%d %H:%M:%S %z')} in {zone}"
        for zone in zones
    ]
    return f" (it is {', '.join(shown)})" if shown else ""
