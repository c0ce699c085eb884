"""What runs because a user asked, in words."""

import json
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from scheduler.on_demand.many import ManyVerb
from services.runs import (
    Cancelled,
    CancelledAll,
    Outcomes,
    Ran,
    RanAll,
    Repeated,
    RepeatedAll,
    RequestedRun,
    RunPlan,
)
from services.runs.many import Bulk, left_out_in_words
from services.words import instant

Many = Callable[..., Iterator[str]]


def _ran(one: Ran) -> Iterator[str]:
    error = f": {one.error}" if one.error else ""
    yield f"run {one.id} {one.state}{error}"


def _each(words: Callable[[Any], str]) -> Many:
    """Return the format of a list: a line for each item that was not refused."""

    def form(made: Outcomes[Any], *, is_awaited: bool = False) -> Iterator[str]:
        for one in made.root:
            if isinstance(one, RequestedRun):
                yield f"{one.id}: {words(one)}{', ' + one.state if is_awaited else ''}"

    return form


def _repeated(one: Repeated) -> str:
    was = f" (it was recorded with revision {one.old_revision})"
    changed = was if one.revision != one.old_revision else ""
    return f"attempt {one.attempt}, revision {one.revision}{changed}"


def _cancelled(one: Cancelled) -> str:
    return "asked to end" if one.is_asked else "cancelled"


def _plan(plan: RunPlan) -> Iterator[str]:
    yield f"{plan.name} would run on queue {plan.queue}; nothing was recorded"
    for step in plan.steps:
        yield f"  step {step.name} {json.dumps(step.parameters, ensure_ascii=False)}"
    for one in plan.recipients:
        yield f"  reaches {one.id} <{one.address or 'no address'}>"
    if plan.is_about_users and not plan.recipients:
        yield "  reaches the user whom --user names"
    elif plan.sends and not plan.recipients:
        yield "  reaches no user"
    for sent in plan.outgoing:
        when = f", {sent.when}" if sent.when else ""
        to = ", ".join(sent.to) or "nobody"
        yield f"  {sent.kind} of {sent.source} to {sent.count}{when}: {to}"
    yield from (f"  warning: {warning}" for warning in plan.warnings)


# What was done, and what would be.
WORDS = {
    ManyVerb.RETRY: ("retried", "retry"),
    ManyVerb.CANCEL: ("cancelled", "cancel"),
}
MOST_ACTIONS = 20


def _bulk(done: Bulk) -> Iterator[str]:
    did, would = WORDS[done.verb]
    noun = "run" if done.count == 1 else "runs"
    if done.dry_run:
        yield f"would {would} {done.count:,} {noun}; nothing was changed"
    else:
        yield f"{did} {done.count:,} {noun}"
    for one in done.actions[:MOST_ACTIONS]:
        yield f"  {one.count:>5,} of {one.name} ({one.app})"
    if done.actions[MOST_ACTIONS:]:
        yield f"  and of {len(done.actions) - MOST_ACTIONS:,} more actions"
    for first in done.first if done.dry_run else ():
        yield f"  {first.id} {first.action} {instant(first.occurrence_at)} {first.state}"
    if done.dry_run and done.count > len(done.first):
        yield f"  and {done.count - len(done.first):,} more"
    if done.dry_run:
        yield from (f"  {left_out_in_words(one)}" for one in done.left_out)
    if done.has_more:
        yield "more match; give the command again for the next"


FORMS = {
    Bulk: _bulk,
    Ran: _ran,
    RanAll: _each(attrgetter("action")),
    RepeatedAll: _each(_repeated),
    CancelledAll: _each(_cancelled),
    RunPlan: _plan,
}
