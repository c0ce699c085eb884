"""maintenance: prune history, and what plug-ins keep."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa

from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.action.policy import kept_too_short
from models.store import actions, retention, tenants
from models.store.operations import heartbeat
from models.tenant.document import DEFAULT_APP
from models.values import counted
from models.values.durations import format_span
from runtime.database import reading
from runtime.plug_ins import added
from tasks.step_context import WorkContext

BATCH = 500
# Prunes at most so many rows; returns how many.
Batch = Callable[[sa.Connection, int], int]


def run(context: WorkContext) -> StepResult:
    """Prune history, and what plug-ins keep, by retention; report the counts and any problems.

    A plug-in's part of `pruning` takes the context and `in_batches`, and returns its counts by
    name, and its problems, one sentence each.

    If retention is shorter than an action's look-back, no operations are pruned, and StepFailed is
    raised after the rest is done.
    """
    refusal = _refusal(context)
    pruned: Counter[str] = Counter()
    for app in (context.small_app.id, *_deleted_apps(context)):
        for name, batch in _history(context, app).items():
            if refusal is None or name != "operations" or app != context.small_app.id:
                pruned[name] += in_batches(context, name, batch)
    for name, batch in _of_installation(context).items():
        pruned[name] = in_batches(context, name, batch)
    problems: list[str] = []
    for prune in added("pruning"):
        counts, found = prune(context, in_batches)
        pruned.update(counts)
        problems += found
    if refusal is not None:
        raise StepFailed(refusal, permanent=True)
    stopped = context.should_stop()
    return StepResult(
        message=_sentence(pruned, problems, stopped=stopped),
        outcome=StepOutcome.PARTIAL if problems or stopped else StepOutcome.SUCCESS,
        details={"pruned": pruned, "problems": problems},
    )


def _refusal(context: WorkContext) -> str | None:
    """Return why no operation may be pruned, or None: a pruned one could be decided again."""
    kept_for = context.settings.retention.kept_for
    with reading(context.engine) as connection:
        found = actions.longest_look_back(connection, kept_for, context.small_app.id)
    if found is None:
        return None
    name, longest = found
    remedy = kept_too_short(longest, kept_for)
    return f"runs are not pruned: look_back {format_span(longest)} of {name!r} {remedy}"


def _deleted_apps(context: WorkContext) -> Sequence[int]:
    """Return the small apps whose own maintenance was deleted with them, for that of `default`."""
    if context.small_app.name != DEFAULT_APP:
        return ()
    with reading(context.engine) as connection:
        return tenants.deleted_ids(connection)


def _of_installation(context: WorkContext) -> dict[str, Batch]:
    """Return what the maintenance of `default` alone prunes."""
    if context.small_app.name != DEFAULT_APP:
        return {}
    rules = retention.rules_of_installation(context.settings.retention.kept_for)
    return {name: partial(retention.delete, rule) for name, rule in rules.items()}


def _history(context: WorkContext, app: int) -> dict[str, Batch]:
    age = context.settings.retention.kept_for
    rules = retention.rules_of_app(app, age)
    return {
        "operations": lambda c, most: retention.prune_operations(c, app, age, most),
        "events": lambda c, most: retention.prune_raised(c, "events", app, age, most),
        "ends": lambda c, most: retention.prune_raised(c, "ends", app, age, most),
        **{name: partial(retention.delete, rule) for name, rule in rules.items()},
    }


def in_batches(context: WorkContext, name: str, batch: Batch) -> int:
    """Return the number of pruned rows; each batch is its own short transaction."""
    total = 0
    count = BATCH
    while count >= BATCH and not context.should_stop():
        with context.engine.begin() as connection:
            heartbeat.beat(connection, context.key)
            count = batch(connection, BATCH)
        total += count
        context.progress(message=f"{_counted(total, name)} pruned", phase=f"prune {name}")
    return total


def _sentence(pruned: dict[str, Any], problems: list[str], *, stopped: bool) -> str:
    counts = [_counted(count, name) for name, count in pruned.items() if count]
    parts = [f"pruned {', '.join(counts)}" if counts else "nothing to prune"]
    parts += problems
    if stopped:
        parts.append("stopped before the end")
    return "; ".join(parts)


def _counted(count: int, name: str) -> str:
    """Return `1 run`, `3 missed spans`."""
    noun = "run" if name == "operations" else name.removesuffix("s").replace("_", " ")
    return counted(count, noun)
