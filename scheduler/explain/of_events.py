"""Explain an event action's outcome at an instant by the events known now."""

from models.action.plan import Plan
from models.action.schedule import ONE_SECOND
from models.store import key_values
from scheduler.decision import EventWindow, Occurrence, decide_events
from scheduler.events import Watched, undecided, watched_of
from scheduler.explain.explanation import NOT_AN_OCCURRENCE, Explanation, Question

MOST_NAMED = 5


def of_event(asked: Question, plan: Plan) -> Explanation:
    """Answer for an event action at an instant without an operation."""
    due = _due_then(asked, plan)
    if not due:
        return asked.answer(NOT_AN_OCCURRENCE, _nothing_due(plan))
    if not plan.active:
        return asked.paused()
    decided = key_values.instant_value(asked.connection, key_values.EVENTS_DECIDED)
    now = max(asked.now, decided or asked.now)
    window = watched_of(asked.state(plan), now, decided).window
    action = asked.known.action
    is_gone = action["deleted_at"] is not None or action["quarantined"] is not None
    if is_gone or window.since >= asked.instant:
        return asked.decided()
    users = f" for {', '.join(map(_name, due[:MOST_NAMED]))}"
    return asked.not_decided(decide_events(due, window), users)


def _nothing_due(plan: Plan) -> str:
    rule = plan.on_event
    if rule is not None and rule.watched is not None:
        ended = " or ".join(rule.ends)
        return f'no run of "{rule.watched}" ended as {ended} that makes it due then'
    event = "" if rule is None else rule.event
    return f"no user was due then: {event} makes it due, for each user at a different instant"


def _name(one: Occurrence) -> str:
    event = one.event
    return one.subject or f"the end of run {event and event.event_id}"


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
