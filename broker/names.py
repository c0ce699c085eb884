"""Task and queue names: the contract between the scheduler and the workers."""

from models.celery_task import QUEUE_PREFIX
from models.errors import Refused

EXECUTE_HEAVY = "execute_scheduled_action"
EXECUTE_QUICK = "execute_scheduled_action_quick"
METATASK_SCHEDULE = "metatask_schedule"
DELIVER_NOTICE = "deliver_notice"

QUICK = "quick"
HEAVY = "heavy"
DEFAULT = "default"


OUR_TASKS = frozenset({EXECUTE_HEAVY, EXECUTE_QUICK})
WORKER_TASKS = OUR_TASKS | {METATASK_SCHEDULE, DELIVER_NOTICE}

# The sender that Celery's header `origin` names.
ORIGIN = "minutebook"
# With Celery's default exchanges, the monitors of an application would show our workers.
CONTROL_EXCHANGE = "minutebook"
EVENT_EXCHANGE = "minutebook.events"
# Workers move messages that they do not know here; no worker consumes it.
UNKNOWN_QUEUE = f"{QUEUE_PREFIX}unknown"


def is_ours(task: str) -> bool:
    return task in OUR_TASKS


def in_broker(queue: str) -> str:
    """Return the name of our queue in the broker: `minutebook.quick` for `quick`."""
    return QUEUE_PREFIX + queue


def execute_task(*, is_heavy: bool) -> str:
    return EXECUTE_HEAVY if is_heavy else EXECUTE_QUICK


def parse_queues(text: str) -> str:
    """Return the queues without spaces and repetitions; raises Refused for an empty name."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise Refused(f"--queues {text!r}: separate names by commas, such as quick,heavy")
    return ",".join(dict.fromkeys(names))
