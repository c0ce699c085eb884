"""Tasks of the user's Celery application: what is sent, and what may be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import JsonValue

from models.errors import Problem

InDoubt = Literal["leave", "send_again"]
STEP = "celery_task"
# Celery's default queue.
DEFAULT_QUEUE = "celery"
# Minutehand's own workers discard unknown tasks.
OUR_QUEUES = frozenset({"quick", "heavy", "default"})
SETTING = "SCHED_CELERY_TASKS"


@dataclass(frozen=True, slots=True)
class HandOver:
    """A task of the user's Celery application as plans keep it: all that the daemon sends."""

    task: str
    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = field(default_factory=dict)
    in_doubt: InDoubt = "leave"


@dataclass(frozen=True, slots=True)
class CeleryRules:
    """What actions may send: names or patterns of tasks, to any queue but the reserved ones.

    `reserved` is empty if the user's application has its own broker.
    """

    tasks: tuple[str, ...] = ()
    reserved: frozenset[str] = OUR_QUEUES

    def allows(self, task: str) -> bool:
        """Return whether a task of that name may be sent; an empty list allows none."""
        return any(fnmatchcase(task, pattern) for pattern in self.tasks)


NO_TASKS = CeleryRules()


def refusals(document: object, rules: CeleryRules) -> list[Problem]:
    """Return one problem for each part of an action's document that `rules` forbid."""
    parameters = _parameters(document)
    if parameters is None:
        return []
    task, queue = parameters.get("task"), parameters.get("queue")
    path = f"operations.{STEP}"
    found = []
    if isinstance(task, str) and not rules.allows(task):
        found.append(Problem(f"{path}.task", task, _not_allowed(rules.tasks)))
    if queue in rules.reserved:
        found.append(Problem(f"{path}.queue", queue, OURS))
    elif queue is None and (other := _policy_queue(document)) in rules.reserved:
        found.append(Problem("policy.queue", other, OURS))
    return found


OURS = (
    "is a queue of Minutehand's own workers, which discard this task; name a queue of your "
    "application's workers"
)


def _not_allowed(allowed: Sequence[str]) -> str:
    what = f"allows {', '.join(allowed)} only" if allowed else "allows no task"
    return f"{SETTING} {what}; add the name, or a pattern such as shop.tasks.*, to that setting"


def _parameters(document: object) -> Mapping[str, Any] | None:
    operations = document.get("operations") if isinstance(document, Mapping) else None
    step = operations.get(STEP) if isinstance(operations, Mapping) else None
    return step if isinstance(step, Mapping) else None


def _policy_queue(document: object) -> object:
    policy = document.get("policy") if isinstance(document, Mapping) else None
    queue = policy.get("queue") if isinstance(policy, Mapping) else None
    return queue if isinstance(queue, str) else None
