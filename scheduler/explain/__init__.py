"""Why an action ran, or did not run, at an instant: total, and from the tables alone."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Broken, CronTrigger, Plan
from models.operation import ENDED, OperationState
from models.sql import read_clock
from models.store import ticks
from models.store.actions import explain_facts
from models.store.actions.explain_facts import Known, Standing
from models.values import format_instant
from runtime.config import Settings, load_settings
from runtime.database import default_engine, reading
from scheduler.events import is_within
from scheduler.events.decide import Watched, undecided
from scheduler.explain.operation_text import ended, runs, sends_again, waits
from scheduler.fingerprint import operation_id
from scheduler.occurrence import decide, has_occurrence, is_known_to, neighbours
from scheduler.record import Subject
from scheduler.schedule import ONE_SECOND

NOT_AN_OCCURRENCE = "not_an_occurrence"
NOT_DUE_YET = "not_due_yet"
# Its instant has come, and no tick has decided it yet.
UNDECIDED = "undecided"
PAUSED = "paused"
SET_ASIDE = "set_aside"
DELETED = "deleted"
MISSED = "missed"
PRUNED = "pruned"
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of one instant of an action.

    `verdict` is `not_an_occurrence`, `not_due_yet`, `undecided`, `paused`, `set_aside`, `deleted`,
    `pruned`, or the state of the occurrence's operation; `text` says why, in a sentence.
    `operations` has id, state, subject and text of each operation of that instant.
    """

    action: str
    uid: UUID
    instant: datetime
    verdict: str
    text: str
    revision: int | None = None
    operations: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    connection: sa.Connection
    known: Known
    instant: datetime
    now: datetime
    settings: Settings
    subject: str | None

    @property
    def lease(self) -> timedelta:
        """After how long a silent worker counts as gone."""
        return timedelta(seconds=self.settings.worker.lease_s)

    def standing(self) -> Standing:
        """How the installation stands."""
        return explain_facts.standing(self.connection, self.lease)

    def answer(self, verdict: str, text: str) -> Explanation:
        revision = self.known.revision
        number = None if revision is None else revision["number"]
        action = self.known.action
        return Explanation(action["name"], action["uid"], self.instant, verdict, text, number)


def explain(
    action: UUID,
    instant: datetime,
    connection: sa.Connection | None = None,
    settings: Settings | None = None,
    subject: str | None = None,
) -> Explanation:
    """Return what became of an action at an instant, and why; fractions of a second are cut.

    Asks the database only: of `connection`, or of this process's settings. `subject` asks for one
    user of an event action. Raises NotFound for an action that nobody knows, ValueError for a naive
    instant.
    """
    if instant.tzinfo is None:
        raise ValueError(f"naive instant {instant!r}")
    if connection is None:
        with reading(default_engine()) as opened:
            return explain(action, instant, opened, settings, subject)
    settings = settings or load_settings()
    instant = instant.replace(microsecond=0)
    known = explain_facts.known(connection, action, instant, subject)
    asked = _Asked(connection, known, instant, read_clock(connection), settings, subject)
    return _recorded(asked) if known.recorded else _of_revision(asked)


def _recorded(asked: _Asked) -> Explanation:
    """Answer by the operations of that instant: those of the occurrence first, then manual runs."""
    rows = sorted(asked.known.recorded, key=lambda row: not _is_due(asked, row))
    found = tuple(_shown(asked, row) for row in rows)
    if not _is_due(asked, rows[0]):
        # Somebody ran it in that very second: what became of the occurrence is another question.
        answer = _of_revision(asked)
        if answer.verdict != NOT_AN_OCCURRENCE:
            return replace(answer, operations=found)
    first, action = found[0], asked.known.action
    return Explanation(
        action["name"], action["uid"], asked.instant, first["state"], first["text"],
        first["revision"], found,
    )  # fmt: skip


def _is_due(asked: _Asked, row: sa.RowMapping) -> bool:
    """Whether an operation is that of the occurrence, and not a manual run."""
    its_own = operation_id(asked.known.action["uid"], asked.instant)
    return row["id"] == its_own or row["event_at"] is not None


def _shown(asked: _Asked, row: sa.RowMapping) -> dict[str, Any]:
    told = {key: row[key] for key in ("id", "state", "subject", "triggerer", "revision")}
    return told | {"text": _told(asked, row)}


def _told(asked: _Asked, row: sa.RowMapping) -> str:
    if row["state"] in ENDED:
        return ended(row)
    if row["state"] == OperationState.RUNNING:
        return runs(row, asked.now, asked.lease)
    error = explain_facts.last_error(asked.connection, row["id"]) if row["attempt"] > 1 else None
    return waits(row, asked.standing(), asked.now, error)


def _of_revision(asked: _Asked) -> Explanation:
    """Answer for an instant without an operation: by the revision that was in force."""
    action, revision = asked.known.action, asked.known.revision
    if revision is None:
        created = format_instant(action["created_at"])
        text = f"the action was created at {created}: nothing up to then is its occurrence"
        return asked.answer(NOT_AN_OCCURRENCE, text)
    gone = _gone(asked, revision)
    if gone is not None:
        return gone
    plan = revision["plan"]
    if isinstance(plan, Broken):
        text = f"the plan of revision {revision['number']} cannot be read: {plan.reason}"
        return asked.answer(SET_ASIDE, text)
    return _of_plan(asked, revision, plan)


def _of_plan(asked: _Asked, revision: sa.RowMapping, plan: Plan) -> Explanation:
    action = asked.known.action
    if plan.on_event is not None:
        return _of_event(asked, plan, revision)
    if not has_occurrence(plan, action["uid"], asked.instant):
        return asked.answer(NOT_AN_OCCURRENCE, _nearest(plan, asked))
    if not plan.active:
        return _paused(asked, revision)
    is_decided = asked.instant <= action["watermark"]
    return _decided(asked) if is_decided else _not_decided(plan, asked)


def _paused(asked: _Asked, revision: sa.RowMapping) -> Explanation:
    since = format_instant(revision["effective_from"])
    text = f"paused since {since} by {revision['author']} (revision {revision['number']})"
    return asked.answer(PAUSED, text)


def _of_event(asked: _Asked, plan: Plan, revision: sa.RowMapping) -> Explanation:
    """Answer for an action on events, by the events that are known now: one may have moved on."""
    who = _due_by_events(asked, plan, revision)
    if not who:
        return _decided(asked) if asked.known.span is not None else _nobody(asked, plan)
    if not plan.active:
        return _paused(asked, revision)
    told = ", ".join(who[:MOST_NAMED])
    decided_until = ticks.instant_fact(asked.connection, ticks.EVENTS_DECIDED)
    if decided_until is not None and asked.instant <= decided_until:
        return _decided_event(asked, told)
    if asked.instant > asked.now:
        return asked.answer(NOT_DUE_YET, f"due in {_span(asked.instant - asked.now)} for {told}")
    return asked.answer(UNDECIDED, f"is due for {told}: {sends_again(asked.standing())}")


def _decided_event(asked: _Asked, who: str) -> Explanation:
    kept = timedelta(days=asked.settings.retention.operations_days)
    if asked.known.span is not None or asked.instant <= asked.now - kept:
        return _decided(asked)
    text = f"the event of {who} became known after its time, and nothing was recorded"
    return asked.answer(MISSED, text)


def _nobody(asked: _Asked, plan: Plan) -> Explanation:
    event = "" if plan.on_event is None else plan.on_event.event
    text = f"nobody was due then: {event} makes it due, for each user at an instant of their own"
    return asked.answer(NOT_AN_OCCURRENCE, text)


def _due_by_events(asked: _Asked, plan: Plan, revision: sa.RowMapping) -> list[str]:
    """Return the users who count, whom an event makes due at this instant, without an operation."""
    action, trigger = asked.known.action, plan.on_event
    if trigger is None or not is_within(plan, asked.instant):
        return []
    subject = Subject(action["uid"], action["small_app_id"], action["name"], revision["number"])
    before = asked.instant - ONE_SECOND
    watched = Watched(subject, plan, trigger, before, before)
    found = {
        one.event.id
        for some in undecided(asked.connection, [watched], asked.instant)
        for one in some
    }
    return sorted(found if asked.subject is None else found & {asked.subject})


def _gone(asked: _Asked, revision: sa.RowMapping) -> Explanation | None:
    """Answer for an instant at which no revision decided: the action was deleted, or set aside."""
    deleted_at, ended_at = asked.known.action["deleted_at"], revision["ended_at"]
    if deleted_at is not None and asked.instant > deleted_at:
        return asked.answer(DELETED, f"the action was deleted at {format_instant(deleted_at)}")
    if ended_at is not None and asked.instant > ended_at:
        text = f"nothing is due since {format_instant(ended_at)}: {revision['end_reason']}"
        return asked.answer(SET_ASIDE, text)
    return None


def _decided(asked: _Asked) -> Explanation:
    """Answer for an occurrence that was decided and has no operation of its own."""
    span = asked.known.span
    if span is not None:
        first, last = format_instant(span["first_at"]), format_instant(span["last_at"])
        whole = f"one of {span['count']} occurrences from {first} to {last}"
        told = f"was missed: {span['reason']}; {whole}, noted at"
        return asked.answer(MISSED, f"{told} {format_instant(span['recorded_at'])}")
    days = asked.settings.retention.operations_days
    text = f"was decided; its record is no longer kept (retention.operations_days is {days})"
    return asked.answer(PRUNED, text)


def _not_decided(plan: Plan, asked: _Asked) -> Explanation:
    action, instant = asked.known.action, asked.instant
    if action["edited_at"] is not None and instant > action["edited_at"]:
        edited = format_instant(action["edited_at"])
        text = f"the action was edited by SQL at {edited}; the next tick takes that over"
        return asked.answer(NOT_DUE_YET if instant > asked.now else UNDECIDED, text)
    if instant > asked.now:
        return asked.answer(NOT_DUE_YET, f"due in {_span(instant - asked.now)}")
    decision = decide(plan, action["uid"], action["watermark"], asked.now)
    reasons = {missed.at: missed.reason for missed in decision.missed}
    if instant in decision.due:
        fate = "is due and would be sent"
    else:
        fate = f"would be missed ({reasons.get(instant, 'too late or overtaken')})"
    return asked.answer(UNDECIDED, f"{fate}: {sends_again(asked.standing())}")


def _nearest(plan: Plan, asked: _Asked) -> str:
    if not is_known_to(plan, asked.instant):
        return "it lies outside the years 1970 to 2199, which cron rules know"
    before, after = neighbours(plan, asked.known.action["uid"], asked.instant)
    near = [
        f"{word} {format_instant(at)}"
        for word, at in (("the last before it is", before), ("the next is", after))
        if at is not None
    ]
    found = "; ".join(near) or "the rule has no occurrence"
    zones = sorted({one.zone for one in plan.triggers if isinstance(one, CronTrigger)})
    return f"the rule does not name this instant: {found}{_zones(zones, asked.instant)}"


def _zones(zones: list[str], instant: datetime) -> str:
    """Say what the clock on the wall shows then, for that is what a rule is about."""
    from zoneinfo import ZoneInfo

    shown = [
        f"{instant.astimezone(ZoneInfo(zone)).strftime('%a %Y-%m-%d %H:%M:%S %z')} in {zone}"
        for zone in zones
    ]
    return f" (it is {', '.join(shown)})" if shown else ""


def _span(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} days {clock}" if days else clock
