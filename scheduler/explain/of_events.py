"""Explain an event action's outcome at an instant by the events known now."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from models.action.plan import Broken, Plan
from models.action.schedule import ONE_SECOND
from models.events import LAST_SEEN
from models.store import facts
from models.store.actions import explain_facts, missed
from models.values import format_instant
from scheduler.decision import EventWindow, Occurrence, decide_events
from scheduler.events import Watched, undecided, watched_of
from scheduler.explain.explanation import (
    MISSED,
    MOST_NAMED,
    NOT_AN_OCCURRENCE,
    NOT_DUE_YET,
    UNDECIDED,
    Explanation,
    Question,
    in_span,
    paused,
    span_in_words,
    without_record,
)
from scheduler.explain.operation_text import sends_again

# When a rule ended, and how.
End = tuple[datetime, str]


def of_event(asked: Question, plan: Plan) -> Explanation:
    """Answer for an event action at an instant without an operation."""
    due = _due_then(asked, plan)
    if not due:
        return _no_user(asked, plan)
    if not plan.active:
        return paused(asked)
    window = watched_of(asked.state(plan), *_now_and_decided(asked)).window
    ended = _ended(asked, plan)
    if ended is not None or window.since >= asked.instant:
        return _decided(asked, plan, due, ended)
    decision, users = decide_events(due, window), _names(due)
    if asked.instant > asked.now:
        due_in = span_in_words(asked.instant - asked.now)
        return asked.answer(NOT_DUE_YET, f"due in {due_in} for {users}")
    reason = None if decision.due else decision.missed[-1].reason
    fate = "would be sent" if reason is None else f"would be missed ({reason})"
    return asked.answer(UNDECIDED, f"is due for {users}, {fate}: {sends_again(asked.status())}")


def _now_and_decided(asked: Question) -> tuple[datetime, datetime | None]:
    """Return the `now` of the next tick, and up to when events are decided already."""
    decided = facts.instant_fact(asked.connection, facts.EVENTS_DECIDED)
    now = asked.now if decided is None else max(asked.now, decided)
    return now, decided


def _decided(
    asked: Question, plan: Plan, due: Sequence[Occurrence], ended: End | None
) -> Explanation:
    span = asked.known.span
    if span is not None:
        return in_span(asked, span, span["reason"])
    if asked.instant <= asked.now - asked.settings.retention.kept_for:
        return without_record(asked)
    in_time_until = _in_time_until(asked, plan)
    if ended is not None and ended[0] > in_time_until:
        ended = None
    decided_at = in_time_until if ended is None else ended[0]
    recipients = [one for one in due if _may_have_been_recipient(plan, one, decided_at)]
    if not recipients:
        return _no_recipient(asked, due)
    when = _when(ended)
    return asked.answer(MISSED, f"the event of {_names(recipients)} became known {when}")


def _in_time_until(asked: Question, plan: Plan) -> datetime:
    return asked.instant + timedelta(seconds=plan.longest_look_back_s)


def _names(due: Sequence[Occurrence]) -> str:
    return ", ".join(_name(one) for one in due[:MOST_NAMED])


def _name(one: Occurrence) -> str:
    event = one.event
    return one.subject or f"the end of operation {event and event.event_id}"


def _may_have_been_recipient(plan: Plan, one: Occurrence, at: datetime) -> bool:
    """Return whether a user who is selected now was perhaps selected then.

    What the flags say now is no reason why something did not run before they changed.
    """
    event = one.event
    if event is None:
        return False
    since = [event.flags_changed_at]
    if plan.subjects is None or not plan.subjects.keeps_inactivated:
        since.append(event.activated_at)
    return all(changed is None or changed <= at for changed in since)


def _no_recipient(asked: Question, due: Sequence[Occurrence]) -> Explanation:
    is_one = len(due) == 1
    text = (
        f"no user was due then: the flags or groups by which {_names(due)} "
        f"{'is a recipient' if is_one else 'are recipients'} now were changed after that"
    )
    return asked.answer(NOT_AN_OCCURRENCE, text)


def _when(ended: End | None) -> str:
    """Return when an event became known, by what had decided its instant before.

    A change decides what is known; it explains an event that came later but within the look-back.
    """
    if ended is None:
        return "after its time, and nothing was recorded"
    at, how = ended
    changed = f"after the action was {how} at {format_instant(at)}"
    return f"{changed}, which decided the events known by then"


def _ended(asked: Question, plan: Plan) -> End | None:
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
        count = missed.count(asked.connection, span)
        text += f"; a user seen again may be among the {count} missed then"
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
