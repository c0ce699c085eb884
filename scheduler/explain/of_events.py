"""Explain an event action's outcome at an instant by the events known now."""

from datetime import datetime, timedelta

from models.action.plan import Broken, Plan
from models.action.schedule import ONE_SECOND
from models.events import LAST_SEEN
from models.store import ticks
from models.store.actions import explain_facts, missed
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
    span_in_words,
    without_record,
)
from scheduler.explain.operation_text import sends_again
from scheduler.occurrence import TOO_LATE
from scheduler.record import ActionRef


def of_event(asked: Asked, plan: Plan) -> Explanation:
    """Answer for an event action at an instant without an operation."""
    due = _due_then(asked, plan)
    if not due:
        return _no_user(asked, plan)
    if not plan.active:
        return paused(asked)
    users = ", ".join(due[:MOST_NAMED])
    window = _window(asked, plan)
    ended = _ended(asked, plan)
    if ended is not None or window.since >= asked.instant:
        return _decided(asked, users, _when(asked, plan, ended))
    if asked.instant > asked.now:
        due_in = span_in_words(asked.instant - asked.now)
        return asked.answer(NOT_DUE_YET, f"due in {due_in} for {users}")
    is_late = asked.instant <= window.late_until
    fate = f"would be missed ({TOO_LATE})" if is_late else "would be sent"
    return asked.answer(UNDECIDED, f"is due for {users}, {fate}: {sends_again(asked.status())}")


def _window(asked: Asked, plan: Plan) -> Watched:
    """Return the window that the next tick decides, if `plan` is the newest."""
    decided_until = ticks.instant_fact(asked.connection, ticks.EVENTS_DECIDED)
    began = asked.known.action["effective_from"]
    now = asked.now if decided_until is None else max(asked.now, decided_until)
    return watched_of(_subject(asked), plan, began, now, decided_until)


def _decided(asked: Asked, users: str, when: str) -> Explanation:
    span = asked.known.span
    if span is not None:
        return in_span(asked, span, span["reason"])
    if asked.instant <= asked.now - asked.settings.retention.kept_for:
        return without_record(asked)
    return asked.answer(MISSED, f"the event of {users} became known {when}")


def _when(asked: Asked, plan: Plan, ended: tuple[datetime, str] | None) -> str:
    """Return when an event became known, by what had decided its instant before.

    A change decides what is known; it explains an event that came later but within the look-back.
    """
    in_time_until = asked.instant + timedelta(seconds=plan.longest_look_back_s)
    if ended is None or ended[0] > in_time_until:
        return "after its time, and nothing was recorded"
    at, how = ended
    changed = f"after the action was {how} at {format_instant(at)}"
    return f"{changed}, which decided the events known by then"


def _ended(asked: Asked, plan: Plan) -> tuple[datetime, str] | None:
    """Return when and how the rule in force stopped looking for late events; None if it goes on."""
    first = asked.known.revision
    later = [] if first is None else explain_facts.revisions_after(asked.connection, first)
    for one in [] if first is None else [first, *later]:
        new = one["plan"]
        if one is not first and (isinstance(new, Broken) or not plan.has_same_occurrences(new)):
            is_paused = isinstance(new, Plan) and not new.active
            return one["holds_from"] or one["effective_from"], "paused" if is_paused else "changed"
        if one["ended_at"] is not None:
            return one["ended_at"], "deleted" if one["end_reason"] == "deleted" else "quarantined"
    return None


def _no_user(asked: Asked, plan: Plan) -> Explanation:
    event = "" if plan.on_event is None else plan.on_event.event
    if plan.watched is not None and plan.on_event is not None:
        ended = " or ".join(plan.on_event.ends)
        text = f'no operation of "{plan.watched}" ended as {ended} that makes it due then'
        return asked.answer(NOT_AN_OCCURRENCE, text)
    text = f"no user was due then: {event} makes it due, for each user at a different instant"
    span = asked.known.span
    if span is not None and event == LAST_SEEN:
        count = missed.count(asked.connection, span)
        text += f"; a user seen again may be among the {count} missed then"
    return asked.answer(NOT_AN_OCCURRENCE, text)


def _subject(asked: Asked) -> ActionRef:
    action, revision = asked.known.action, asked.known.revision
    number = 0 if revision is None else revision["number"]
    return ActionRef(action["uid"], action["small_app_id"], action["name"], number)


def _due_then(asked: Asked, plan: Plan) -> list[str]:
    """Return the selected users due at this instant without an operation."""
    trigger = plan.on_event
    if trigger is None or not is_within(plan, asked.instant):
        return []
    before = asked.instant - ONE_SECOND
    watched = Watched(_subject(asked), plan, trigger, before, before)
    found = {
        one.event.subject or f"the end of operation {one.event.event_id}"
        for some in undecided(asked.connection, [watched], asked.instant)
        for one in some
    }
    return sorted(found if asked.subject is None else found & {asked.subject})
