"""Task and queue names: the whole contract between the scheduler and the workers."""

from models.celery_task import QUEUE_PREFIX

EXECUTE_HEAVY = "execute_scheduled_action"
EXECUTE_QUICK = "execute_scheduled_action_quick"
METATASK_SCHEDULE = "metatask_schedule"
DELIVER_NOTICE = "deliver_notice"

QUICK = "quick"
HEAVY = "heavy"
DEFAULT = "default"


OUR_TASKS = frozenset({EXECUTE_HEAVY, EXECUTE_QUICK})
# Every task that our own workers run.
WORKER_TASKS = OUR_TASKS | {METATASK_SCHEDULE, DELIVER_NOTICE}

# What the broker calls the exchanges of our workers' control and events. With Celery's own names,
# `celery control shutdown` of an application would end our workers too.
CONTROL_EXCHANGE = "minutehand"
EVENT_EXCHANGE = "minutehand.events"
# Where a worker puts messages that it does not know; nothing takes them from there by itself.
UNKNOWN_QUEUE = f"{QUEUE_PREFIX}unknown"


def is_ours(task: str) -> bool:
    """Return whether an operation's task is one of ours, not of the user's own application."""
    return task in OUR_TASKS


def in_broker(queue: str) -> str:
    """Return what the broker calls a queue of ours: `minutehand.quick` for `quick`."""
    return QUEUE_PREFIX + queue


def execute_task(*, is_heavy: bool) -> str:
    """Return the name of the task that runs an operation of that weight."""
    return EXECUTE_HEAVY if is_heavy else EXECUTE_QUICK
