"""Why an action on events ran, or did not run, at an instant: by the events that are known now."""

from datetime import datetime, timedelta

from models.action.plan import Plan
from models.events import LAST_SEEN
from models.store import ticks
from models.values import format_instant
from scheduler.events import is_within
from scheduler.events.decide import Watched, undecided, watched_of
from scheduler.explain.explanation import (
    MISSED,
    MOST_NAMED,
    NOT_AN_OCCURRENCE,
    NOT_DUE_YET,
    UNDECIDED,
    Asked,
    Explanation,
    in_span,
    paused,
    pruned,
    span_in_words,
)
from scheduler.explain.operation_text import sends_again
from scheduler.occurrence import TOO_LATE
from scheduler.record import ActionRef
from scheduler.schedule import ONE_SECOND


def of_event(asked: Asked, plan: Plan) -> Explanation:
    """Answer for an action on events at an instant without an operation."""
    who = _due_then(asked, plan)
    if not who:
        return _nobody(asked, plan)
    if not plan.active:
        return paused(asked)
    told = ", ".join(who[:MOST_NAMED])
    window = _window(asked, plan)
    if window.since >= asked.instant:
        return _decided(asked, told)
    if asked.instant > asked.now:
        due_in = span_in_words(asked.instant - asked.now)
        return asked.answer(NOT_DUE_YET, f"due in {due_in} for {told}")
    is_late = asked.instant <= window.late_until
    fate = f"would be missed ({TOO_LATE})" if is_late else "would be sent"
    return asked.answer(UNDECIDED, f"is due for {told}, {fate}: {sends_again(asked.standing())}")


def _window(asked: Asked, plan: Plan) -> Watched:
    """Return what the next tick decides; it goes by `plan` only where that is the newest."""
    decided_until = ticks.instant_fact(asked.connection, ticks.EVENTS_DECIDED)
    began = asked.known.action["effective_from"]
    now = asked.now if decided_until is None else max(asked.now, decided_until)
    return watched_of(_subject(asked), plan, began, now, decided_until)


def _decided(asked: Asked, who: str) -> Explanation:
    span = asked.known.span
    if span is not None:
        return in_span(asked, span, span["reason"])
    if asked.instant <= asked.now - timedelta(days=asked.settings.retention.operations_days):
        return pruned(asked)
    return asked.answer(MISSED, f"the event of {who} became known {_when(asked)}")


def _when(asked: Asked) -> str:
    began: datetime = asked.known.action["effective_from"]
    if asked.instant > began:
        return "after its time, and nothing was recorded"
    at = format_instant(began)
    return f"after the action was changed at {at}: what lies before that was decided then"


def _nobody(asked: Asked, plan: Plan) -> Explanation:
    event = "" if plan.on_event is None else plan.on_event.event
    text = f"nobody was due then: {event} makes it due, for each user at an instant of their own"
    if asked.known.span is not None and event == LAST_SEEN:
        text += f"; a user seen again since may be one of {asked.known.span['count']} missed then"
    return asked.answer(NOT_AN_OCCURRENCE, text)


def _subject(asked: Asked) -> ActionRef:
    action, revision = asked.known.action, asked.known.revision
    number = 0 if revision is None else revision["number"]
    return ActionRef(action["uid"], action["small_app_id"], action["name"], number)


def _due_then(asked: Asked, plan: Plan) -> list[str]:
    """Return the users who count, whom an event makes due at this instant, without an operation."""
    trigger = plan.on_event
    if trigger is None or not is_within(plan, asked.instant):
        return []
    before = asked.instant - ONE_SECOND
    watched = Watched(_subject(asked), plan, trigger, before, before)
    found = {
        one.event.id
        for some in undecided(asked.connection, [watched], asked.instant)
        for one in some
    }
    return sorted(found if asked.subject is None else found & {asked.subject})
