"""What runs because a user asked, in words."""

import json
from collections.abc import Iterator

from scheduler.on_demand.many import ManyVerb
from services.runs import (
    Ran,
    RanAll,
    RanOfAll,
    RunPlan,
)
from services.runs.many import Bulk, left_out_in_words
from services.words import instant


def _ran(one: Ran) -> Iterator[str]:
    error = f": {one.error}" if one.error else ""
    yield f"run {one.id} {one.state}{error}"


def _ran_all(made: RanAll, *, is_awaited: bool = False) -> Iterator[str]:
    for one in made.root:
        if isinstance(one, RanOfAll):
            yield f"{one.id}: {one.action}{', ' + one.state if is_awaited else ''}"


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
        to = ", ".join(sent.to) or "no address"
        yield f"  mail of {sent.source} to {sent.count}{when}: {to}"
    yield from (f"  warning: {warning}" for warning in plan.warnings)


# What was done, and what would be.
WORDS = {
    ManyVerb.RETRY: ("retried", "retry"),
    ManyVerb.CANCEL: ("cancelled", "cancel"),
}
MOST_ACTIONS = 20


def _bulk(done: Bulk) -> Iterator[str]:
    # What is refused is printed as errors.
    if done.exit_code != 2:
        yield from _changed(done)
    if done.has_more:
        yield "more match; give the command again for the next"


def _changed(done: Bulk) -> Iterator[str]:
    did, would = WORDS[done.verb]
    runs = f"{done.count:,} {'run' if done.count == 1 else 'runs'}"
    yield f"would {would} {runs}; nothing was changed" if done.dry_run else f"{did} {runs}"
    for of in done.actions[:MOST_ACTIONS]:
        yield f"  {of.count:>5,} of {of.name} ({of.app})"
    if done.actions[MOST_ACTIONS:]:
        yield f"  and of {len(done.actions) - MOST_ACTIONS:,} more actions"
    for one in done.first:
        is_asked = done.verb is ManyVerb.CANCEL and not done.dry_run and one.state == "running"
        asked = ", asked to end" if is_asked else ""
        yield f"  {one.id} {one.action} {instant(one.occurrence_at)} {one.state}{asked}"
    if done.count > len(done.first):
        yield f"  and {done.count - len(done.first):,} more"
    if done.dry_run:
        yield from (f"  {left_out_in_words(one)}" for one in done.left_out)


FORMS = {
    Bulk: _bulk,
    Ran: _ran,
    RanAll: _ran_all,
    RunPlan: _plan,
}
