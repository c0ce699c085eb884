"""maintenance: prune history and snapshots, and check that published and staged files exist."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from data import snapshots as files
from data.store import snapshots as stored
from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.action.policy import kept_too_short
from models.sql import read_clock
from models.store import actions, retention, tenants
from models.store.operations import running
from models.tenant import DEFAULT_APP
from models.values.durations import format_span
from runtime.database import reading
from tasks.step_context import WorkContext

BATCH = 500
Batch = Callable[[sa.Connection], int]


def run(context: WorkContext) -> StepResult:
    """Prune history and snapshots by retention; report the counts and any problems.

    If retention is shorter than an action's look-back, no operations are pruned, and StepFailed is
    raised after the rest is done.
    """
    refusal = _refusal(context)
    pruned: Counter[str] = Counter()
    for app in (context.small_app.id, *_deleted_apps(context)):
        for name, batch in _history(context, app).items():
            if refusal is None or name != "operations" or app != context.small_app.id:
                pruned[name] += _in_batches(context, name, batch)
    for name, batch in _of_installation(context).items():
        pruned[name] = _in_batches(context, name, batch)
    pruned["snapshots"], pruned["files"] = _prune_snapshots(context)
    if refusal is not None:
        raise StepFailed(refusal, permanent=True)
    problems = _problems(context)
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
    return f"operations are not pruned: look_back {format_span(longest)} of {name!r} {remedy}"


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
    age = timedelta(days=context.settings.retention.ticks_days)
    return {
        "ticks": lambda c: retention.prune_ticks(c, age, BATCH),
        "workers": lambda c: retention.prune_workers(c, age, BATCH),
    }


def _history(context: WorkContext, app: int) -> dict[str, Batch]:
    age = context.settings.retention.kept_for
    return {
        "operations": lambda c: retention.prune_operations(c, app, age, BATCH),
        "events": lambda c: retention.prune_events(c, app, age, BATCH),
        "ends": lambda c: retention.prune_ends(c, app, age, BATCH),
        "missed_spans": lambda c: retention.prune_missed_spans(c, app, age, BATCH),
        "backfills": lambda c: retention.prune_backfills(c, app, age, BATCH),
        "notices": lambda c: retention.prune_notices(c, app, age, BATCH),
        "memories": lambda c: retention.prune_memories(c, app, age, BATCH),
    }


def _in_batches(context: WorkContext, name: str, batch: Batch) -> int:
    """Return the number of pruned rows; each batch is its own short transaction."""
    total = 0
    count = BATCH
    while count >= BATCH and not context.should_stop():
        with context.engine.begin() as connection:
            running.beat(connection, context.operation_id, context.attempt)
            count = batch(connection)
        total += count
        context.progress(message=f"{total:,} {name} pruned", phase=f"prune {name}")
    return total


def _prune_snapshots(context: WorkContext) -> tuple[int, int]:
    """Return the numbers of pruned snapshots and files; rows go first, then their files."""
    settings, app = context.settings, context.small_app
    paths: list[str] = []

    def batch(connection: sa.Connection) -> int:
        pruned = stored.prune(connection, app.id, context.settings.retention.snapshots, BATCH)
        paths.extend(pruned)
        return len(pruned)

    rows = _in_batches(context, "snapshots", batch)
    removed = files.remove(settings, paths)
    with reading(context.engine) as connection:
        known, now = stored.paths(connection, app.id), read_clock(connection)
        domains = [domain.name for domain in stored.domains_of(connection, app.id)]
    removed += files.remove(settings, list(files.orphans(settings, app.name, known, now)))
    removed += files.remove_leftovers(settings.home, app.name, domains, now)
    return rows, removed


def _problems(context: WorkContext) -> list[str]:
    """Return one sentence for each staged or published snapshot that is missing or truncated."""
    with reading(context.engine) as connection:
        domains = stored.domains_of(connection, context.small_app.id)
    return [
        f"the {place} snapshot of {domain.name} is damaged; refresh with force"
        for domain in domains
        for place, snapshot in (("staging", domain.staging), ("production", domain.production))
        if snapshot and not files.is_there(context.settings, snapshot.path, snapshot.byte_count)
    ]


def _sentence(pruned: dict[str, Any], problems: list[str], *, stopped: bool) -> str:
    counts = [f"{count:,} {name.replace('_', ' ')}" for name, count in pruned.items() if count]
    parts = [f"pruned {', '.join(counts)}" if counts else "nothing to prune"]
    parts += problems
    if stopped:
        parts.append("stopped before the end")
    return "; ".join(parts)
