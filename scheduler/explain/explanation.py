"""The answer to "why did it run, or not run?", and the facts behind it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.store.actions import explain_facts
from models.store.actions.explain_facts import Known, Status
from models.store.tenants.closing import closing
from models.values import format_instant, instant_or_dash
from runtime.config import Settings
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
MOST_NAMED = 5


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
    connection: sa.Connection
    known: Known
    instant: datetime
    now: datetime
    settings: Settings
    subject: str | None

    def status(self) -> Status:
        """Return the installation's status."""
        return explain_facts.status(self.connection, self.settings.worker.lease)

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
        revision = self.known.revision
        number = None if revision is None else revision["number"]
        action = self.known.action
        return Explanation(action["name"], action["uid"], self.instant, verdict, text, number)


def paused(asked: Question) -> Explanation:
    """Answer for an instant at which the action was paused: when it began, and the author."""
    revision = asked.known.revision
    first = None if revision is None else explain_facts.pause_of(asked.connection, revision)
    if first is None:
        return asked.answer(PAUSED, "paused")
    since = format_instant(first["holds_from"] or first["effective_from"])
    text = f"paused since {since} by {first['author']} (revision {first['number']})"
    return asked.answer(PAUSED, text)


def in_span(asked: Question, span: sa.RowMapping, reason: str) -> Explanation:
    """Answer for an older missed occurrence, which has no operation."""
    first, last, recorded = (
        instant_or_dash(at) for at in (span["first_at"], span["last_at"], span["recorded_at"])
    )
    whole = f"one of {span['count']} occurrences from {first} to {last}"
    return asked.answer(MISSED, f"was missed: {reason}; {whole}, recorded at {recorded}")


def without_record(asked: Question) -> Explanation:
    """Answer for a decided occurrence without a record: pruned, if it is beyond the retention."""
    if asked.instant > asked.now - asked.settings.retention.kept_for:
        text = (
            "was decided, and nothing was recorded: the rule did not name this instant when it was "
            "decided (by other dates of a calendar, or another release of the time-zone data), or "
            "its row was deleted"
        )
        return asked.answer(UNRECORDED, text)
    days = asked.settings.retention.operations_days
    text = f"was decided; its record is no longer kept (retention.operations_days is {days})"
    return asked.answer(PRUNED, text)


def span_in_words(span: timedelta) -> str:
    """Return a span as days and hh:mm:ss."""
    seconds = int(span.total_seconds())
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} days {clock}" if days else clock
