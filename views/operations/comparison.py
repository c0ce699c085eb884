"""How an operation differs from the last success of its action before it."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from pydantic import Field

from models.store import actions, operations
from runtime.database import reading
from views.finding import operation_of
from views.installation import Installation
from views.operations.sent import SentTask, sent_task
from views.verbs import READ, Verb
from views.view import Instant, View

# A success that took longer than this, as a multiple of the one before, is worth a look.
TWICE = 2.0
MOST_DIFFERENCES = 30
Row = Mapping[str, Any]


class Difference(View):
    """What differs between two operations; null where one of them has no such thing."""

    what: str = Field(
        description="`revision`, `queue`, `worker`, `task`, `application`, `args`, `kwargs.NAME`, "
        "`steps.STEP.FIGURE`, or `processed.STEP`: how much the last step did."
    )
    this: Any = Field(description="Of this operation.")
    last_success: Any = Field(description="Of the last success.")


class Comparison(View):
    """An operation beside the last success of its action."""

    id: UUID = Field(description="Id of the operation.")
    duration_s: float | None = Field(description="How long its last attempt took.")
    last_success_id: UUID | None = Field(
        description="The last success of an earlier occurrence; null if none of the last thousand."
    )
    last_success_at: Instant | None = Field(description="The occurrence of that success.")
    last_success_duration_s: float | None = Field(description="How long that success took.")
    is_much_longer: bool = Field(description="Whether it took more than twice as long.")
    differences: tuple[Difference, ...] = Field(description="What else differs.")


@Verb("compare_operation", "GET /api/operations/{id}/comparison", READ)
def compare(installation: Installation, id: str) -> Comparison:
    """Compare an operation with the last success of its action: duration, figures, arguments."""
    with reading(installation.engine) as connection:
        found = operation_of(connection, id, installation.scope)
        row = operations.get(connection, found, installation.scope)
        last = operations.last_success(connection, row["action_uid"], row["occurrence_at"])
        numbers = set() if last is None else {row["revision"], last["revision"]}
        # Operations of one revision have the same task.
        asked = numbers if len(numbers) > 1 else ()
        plans = {n: actions.plan_at(connection, row["action_uid"], n) for n in asked}
    celery = installation.settings.celery
    tasks = {number: sent_task(plan, celery) for number, plan in plans.items()}
    return compared(row, last, tasks)


def compared(row: Row, last: Row | None, tasks: Mapping[int, SentTask | None]) -> Comparison:
    """Return how a stored operation differs from another; `tasks` are what revisions send."""
    known = last or {}
    took, usual = _seconds(row), _seconds(known)
    differences = () if last is None else tuple(_differences(row, last, tasks))
    return Comparison(
        id=row["id"],
        duration_s=took,
        last_success_id=known.get("id"),
        last_success_at=known.get("occurrence_at"),
        last_success_duration_s=usual,
        is_much_longer=None not in {took, usual} and (took or 0) > TWICE * (usual or 0),
        differences=differences[:MOST_DIFFERENCES],
    )


def _seconds(row: Row) -> float | None:
    since, until = row.get("started_at"), row.get("finished_at")
    return None if since is None or until is None else max(0.0, (until - since).total_seconds())


def _differences(row: Row, last: Row, tasks: Mapping[int, SentTask | None]) -> Iterator[Difference]:
    """Yield what differs; figures only where both have them: a step that failed has none."""
    this, that = _figures(row), _figures(last)
    both = this.keys() & that.keys()
    yield from _where_other({k: this[k] for k in this if k in both}, that)
    sent, before = (_arguments(tasks.get(one["revision"])) for one in (row, last))
    yield from _where_other({**dict.fromkeys(before), **sent}, before)
    yield from _where_other({key: row[key] for key in ("revision", "queue")}, last)
    here, there = (_without_process(one["worker"]) for one in (row, last))
    if here and there:
        yield from _where_other({"worker": here}, {"worker": there})


def _without_process(worker: str | None) -> str:
    """Return the worker and its host: which of its processes ran an operation says nothing."""
    return (worker or "").partition(":")[0]


def _where_other(these: Mapping[str, Any], those: Mapping[str, Any]) -> Iterator[Difference]:
    for what, this in these.items():
        that = those.get(what)
        if this != that:
            yield Difference(what=what, this=this, last_success=that)


def _figures(row: Row) -> dict[str, int]:
    """Return the counts of an operation: those of its steps, and how much the last one did."""
    steps = [one for one in row["steps"] or () if isinstance(one, Mapping)]
    found = {
        name: count
        for one in steps
        for name, count in _counts(f"steps.{one.get('name')}", one.get("details"))
    }
    begun = [one.get("name") for one in steps if one.get("started_at")]
    if row["processed"] is not None and begun:
        # Of the step that ran last: counts of two steps cannot be compared.
        found[f"processed.{begun[-1]}"] = row["processed"]
    return found


def _counts(name: str, value: object) -> Iterator[tuple[str, int]]:
    match value:
        case bool():
            return
        case int():
            yield name, value
        case dict():
            for key, one in value.items():
                yield from _counts(f"{name}.{key}", one)


def _arguments(task: SentTask | None) -> dict[str, Any]:
    if task is None:
        return {}
    named = {f"kwargs.{name}": value for name, value in task.kwargs.items()}
    whole = {"task": task.name, "application": task.application, "args": list(task.args)}
    return {**whole, **named}
