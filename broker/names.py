"""Task and queue names: the whole contract between the scheduler and the workers."""

EXECUTE_HEAVY = "execute_scheduled_action"
EXECUTE_QUICK = "execute_scheduled_action_quick"
METATASK_SCHEDULE = "metatask_schedule"
DELIVER_NOTICE = "deliver_notice"

QUICK = "quick"
HEAVY = "heavy"
DEFAULT = "default"


OUR_TASKS = frozenset({EXECUTE_HEAVY, EXECUTE_QUICK})


def is_ours(task: str) -> bool:
    """Return whether an operation's task is one of ours, not of the user's own application."""
    return task in OUR_TASKS


def execute_task(*, is_heavy: bool) -> str:
    """Return the name of the task that runs an operation of that weight."""
    return EXECUTE_HEAVY if is_heavy else EXECUTE_QUICK
