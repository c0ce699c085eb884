"""The question "why did it run, or not run?", and the answers for what has no operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.store.actions import explain_facts
from models.store.actions.explain_facts import Known
from models.store.tenants.closing import closing
from models.values import instant_or_dash
from runtime.config import Settings
from scheduler.decision import Decision
from scheduler.explain.operation_text import sends_again
from scheduler.record import ActionRef, State

NOT_AN_OCCURRENCE = "not_an_occurrence"
NOT_DUE_YET = "not_due_yet"
# The instant has passed, and no tick has decided it yet.
UNDECIDED = "undecided"
PAUSED = "paused"
QUARANTINED = "quarantined"
DELETED = "deleted"
MISSED = "missed"
PRUNED = "pruned"
UNRECORDED = "unrecorded"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The outcome of an action at one instant.

    `verdict` is `not_an_occurrence`, `not_due_yet`, `undecided`, `paused`, `quarantined`,
    `deleted`, `pruned`, `unrecorded`, or the state of the occurrence's operation; `text` is
    the reason. `operations` has id, state, subject and text of each operation of that instant.
    """

    action: str
    uid: UUID
    instant: datetime
    verdict: str
    text: str
    revision: int | None = None
    operations: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of an action at an instant, and what is known of it."""

    connection: sa.Connection
    known: Known
    instant: datetime
    now: datetime
    settings: Settings
    subject: str | None

    @property
    def uid(self) -> UUID:
        """The uid of the action."""
        return UUID(str(self.known.action["uid"]))

    def state(self, plan: Plan) -> State:
        """Return the action as `plan` decides it."""
        action, revision = self.known.action, self.known.revision
        number = 0 if revision is None else revision["number"]
        ref = ActionRef(action["uid"], action["small_app_id"], action["name"], number)
        return State(ref, plan, action["effective_from"])

    def closing(self, plan: Plan) -> Plan:
        """Return the plan with the calendars of its small app."""
        return closing(self.connection, plan, self.known.action["small_app_id"])

    def answer(self, verdict: str, text: str) -> Explanation:
        """Return the answer, under the revision in force."""
        action, revision = self.known.action, self.known.revision
        number = None if revision is None else revision["number"]
        return Explanation(action["name"], self.uid, self.instant, verdict, text, number)

    def paused(self) -> Explanation:
        """Answer for an instant at which the action was paused."""
        revision = self.known.revision
        its: Mapping[Any, Any] = {} if revision is None else revision
        begun = instant_or_dash(its.get("effective_from"))
        text = f"paused under revision {its.get('number')} of {begun} by {its.get('author')}"
        return self.answer(PAUSED, text)

    def decided(self) -> Explanation:
        """Answer for a decided occurrence that has no operation."""
        span, retention = self.known.span, self.settings.retention
        if span is not None:
            first, last, at = (
                instant_or_dash(span[key]) for key in ("first_at", "last_at", "recorded_at")
            )
            whole = f"one of {span['count']} occurrences from {first} to {last}, recorded at {at}"
            return self.answer(MISSED, f"was missed: {span['reason']}; {whole}")
        if self.instant > self.now - retention.kept_for:
            text = (
                "was decided, and nothing was recorded: by what was known then it was not due, or "
                "its row was deleted"
            )
            return self.answer(UNRECORDED, text)
        days = retention.operations_days
        text = f"was decided; its record is no longer kept (retention.operations_days is {days})"
        return self.answer(PRUNED, text)

    def not_decided(self, decision: Decision | None, users: str = "") -> Explanation:
        """Answer for an occurrence that the next tick decides so."""
        if self.instant > self.now:
            due_in = _span_in_words(self.instant - self.now)
            return self.answer(NOT_DUE_YET, f"due in {due_in}{users}")
        reasons = {} if decision is None else {one.at: one.reason for one in decision.missed}
        span = None if decision is None else decision.missed_span
        fate = "would be sent"
        if decision is None or self.instant not in decision.due_at:
            reason = reasons.get(self.instant) or (span.reason if span else "too late")
            fate = f"would be missed ({reason})"
        status = explain_facts.status(self.connection, self.settings.worker.lease)
        return self.answer(UNDECIDED, f"is due{users} and {fate}: {sends_again(status)}")


def _span_in_words(span: timedelta) -> str:
    """Return a span as days and hh:mm:ss."""
    seconds = int(span.total_seconds())
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} days {clock}" if days else clock
