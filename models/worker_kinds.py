"""The three kinds of worker, and how operations reach them."""

from dataclasses import dataclass

from models.job import JOB
from models.job import QUEUE_PREFIX as JOB_PREFIX

# The prefix of Minutebook's own queues in the broker: an application that shares the broker may use
# any other name.
QUEUE_PREFIX = "minutebook."
# Stands between exchange and routing key where a queue is shown; no queue's name contains it.
BY_EXCHANGE = "/"
# The tasks of our workers: of operations, and of all else that they do.
EXECUTE_HEAVY = "execute_scheduled_action"
EXECUTE_QUICK = "execute_scheduled_action_quick"
METATASK_SCHEDULE = "metatask_schedule"
DELIVER_NOTICE = "deliver_notice"


@dataclass(frozen=True, slots=True)
class WorkerKind:
    """A kind of worker: no others may claim, renew or end its operations."""

    name: str
    # The tasks that its operations name; empty for any that no other kind has.
    tasks: frozenset[str]
    # What stands before the name of a queue where queues of all worker kinds are listed.
    prefix: str
    # Whether workers of ours consume its queues, and which they are is known.
    is_ours: bool = True

    def listed(self, queue: str) -> str:
        """Return the name of a queue where queues of all worker kinds are listed."""
        return self.prefix + queue

    def knows_readers(self, queue: str, *, is_sent: bool) -> bool:
        """Return whether all workers that may take what waits in a queue are known.

        Those of an application are only if they follow its tasks, and read the queue itself.
        """
        return self.is_ours or (is_sent and BY_EXCHANGE not in queue)


OURS = WorkerKind("minutebook", frozenset({EXECUTE_HEAVY, EXECUTE_QUICK}), QUEUE_PREFIX)
# Workers that ask over HTTP: the broker gets none of these operations.
HTTP = WorkerKind("job", frozenset({JOB}), QUEUE_PREFIX + JOB_PREFIX)
# Workers of the user's Celery application.
CELERY = WorkerKind("celery_task", frozenset(), "", is_ours=False)
WORKER_KINDS = (HTTP, OURS, CELERY)
WORKER_TASKS = frozenset({EXECUTE_HEAVY, EXECUTE_QUICK, METATASK_SCHEDULE, DELIVER_NOTICE})
# The tasks that no application may have.
OWN_TASKS = WORKER_TASKS | {JOB}
_OF_TASKS = {task: one for one in WORKER_KINDS for task in one.tasks}


def worker_kind_of(task: str) -> WorkerKind:
    """Return the kind of an operation's workers by its task, which its row and its message name."""
    return _OF_TASKS.get(task, CELERY)
