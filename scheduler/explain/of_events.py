"""Explain an event action's outcome at an instant by the events known now."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from models.action.plan import Plan
from models.action.schedule import ONE_SECOND
from models.events import LAST_SEEN
from models.store import key_values
from models.store.actions import explain_facts
from models.values import format_instant
from scheduler.decision import EventWindow, Occurrence, decide_events
from scheduler.events import Watched, undecided, watched_of
from scheduler.explain.explanation import (
    MOST_NAMED,
    NOT_AN_OCCURRENCE,
    NOT_DUE_YET,
    UNDECIDED,
    UNRECORDED,
    Explanation,
    Question,
    in_span,
    paused,
    span_in_words,
    without_record,
)
from scheduler.explain.operation_text import sends_again


def of_event(asked: Question, plan: Plan) -> Explanation:
    """Answer for an event action at an instant without an operation."""
    due = _due_then(asked, plan)
    if not due:
        return _no_user(asked, plan)
    if not plan.active:
        return paused(asked)
    window = watched_of(asked.state(plan), *_now_and_decided(asked)).window
    if window.since >= asked.instant or not _goes_on(asked, plan):
        return _decided(asked, due)
    decision, users = decide_events(due, window), _names(due)
    if asked.instant > asked.now:
        due_in = span_in_words(asked.instant - asked.now)
        return asked.answer(NOT_DUE_YET, f"due in {due_in} for {users}")
    reason = None if decision.due else decision.missed[-1].reason
    fate = "would be sent" if reason is None else f"would be missed ({reason})"
    return asked.answer(UNDECIDED, f"is due for {users}, {fate}: {sends_again(asked.status())}")


def _now_and_decided(asked: Question) -> tuple[datetime, datetime | None]:
    """Return the `now` of the next tick, and up to when events are decided already."""
    decided = key_values.instant_value(asked.connection, key_values.EVENTS_DECIDED)
    now = asked.now if decided is None else max(asked.now, decided)
    return now, decided


def _decided(asked: Question, due: Sequence[Occurrence]) -> Explanation:
    span = asked.known.span
    if span is not None:
        return in_span(asked, span, span["reason"])
    if asked.instant <= asked.now - asked.settings.retention.kept_for:
        return without_record(asked)
    text = (
        f"is due for {_names(due)} by what is known now, and nothing was recorded: the event became"
        " known, or the user a recipient, after this instant was decided"
    )
    return asked.answer(UNRECORDED, text)


def _goes_on(asked: Question, plan: Plan) -> bool:
    """Return whether the action's newest revision still looks for late events of this rule."""
    newest = explain_facts.newest_plan(asked.connection, asked.known)
    return isinstance(newest, Plan) and newest.active and plan.has_same_occurrences(newest)


def _in_time_until(asked: Question, plan: Plan) -> datetime:
    return asked.instant + timedelta(seconds=plan.longest_look_back_s)


def _names(due: Sequence[Occurrence]) -> str:
    return ", ".join(_name(one) for one in due[:MOST_NAMED])


def _name(one: Occurrence) -> str:
    event = one.event
    return one.subject or f"the end of operation {event and event.event_id}"


def _no_user(asked: Question, plan: Plan) -> Explanation:
    event = "" if plan.on_event is None else plan.on_event.event
    if plan.watched is not None and plan.on_event is not None:
        ended = " or ".join(plan.on_event.ends)
        text = f'no operation of "{plan.watched}" ended as {ended} that makes it due then'
        return asked.answer(NOT_AN_OCCURRENCE, text)
    text = f"no user was due then: {event} makes it due, for each user at a different instant"
    if plan.active and asked.now <= (until := _in_time_until(asked, plan)):
        text += (
            f"; a user whose event becomes known, or who becomes a recipient, by "
            f"{format_instant(until)} may still be due"
        )
    span = asked.known.span
    if span is not None and event == LAST_SEEN:
        text += f"; a user seen again may be among the {span['count']} missed then"
    return asked.answer(NOT_AN_OCCURRENCE, text)


def _due_then(asked: Question, plan: Plan) -> list[Occurrence]:
    """Return what is due at this instant without an operation, one for each selected user."""
    rule = plan.on_event
    if rule is None or not plan.policy.is_within(asked.instant):
        return []
    then = EventWindow(asked.instant - ONE_SECOND, asked.instant, asked.instant)
    watched = Watched(asked.state(plan).action, plan, rule, then)
    found = {
        _name(one): one
        for some in undecided(asked.connection, [watched])
        for _, one in some
        if asked.subject is None or one.subject == asked.subject
    }
    return [found[name] for name in sorted(found)]
