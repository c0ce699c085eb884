"""What an agent may act on: operations of the step `celery_task`, and of no other."""

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from models.carriers import CELERY, OWN_TASKS
from models.celery_task import SETTING
from models.store.operations.start_checks import OperationFacts
from models.trust import not_for_restricted


@dataclass(frozen=True, slots=True)
class Bounds:
    """The tasks and small apps of one agent.

    An agent without patterns of tasks, such as a worker's child that has no SCHED_CELERY_TASKS, is
    bound by the tasks of the small app alone; one without `apps` acts for all of them.
    """

    tasks: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()

    def allows(self, task: str) -> bool:
        """Return whether the agent serves tasks of that name."""
        is_named = not self.tasks or any(fnmatchcase(task, pattern) for pattern in self.tasks)
        return is_named and task not in OWN_TASKS

    def why_not(self, recorded: OperationFacts) -> str | None:
        """Return why the agent leaves an operation alone, None if it may act on it."""
        if recorded.carrier is not CELERY:
            return "it is not of the step celery_task"
        if self.apps and recorded.app_name not in self.apps:
            return f"small app {recorded.app_name!r} is not one of --apps of this agent"
        if not self.allows(recorded.task):
            return f"{SETTING} of this agent does not allow {recorded.task!r}"
        if not recorded.trust.allows_task(recorded.task):
            why = not_for_restricted(recorded.app_name, f"--tasks {recorded.task}")
            return f"{recorded.task!r} {why}"
        return None

    def within(self, tasks: Collection[str]) -> tuple[str, ...]:
        """Return those tasks that the agent serves: a worker follows no others through it."""
        return tuple(task for task in tasks if self.allows(task))
