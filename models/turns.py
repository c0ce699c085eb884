"""How operations that wait for a queue are ordered, and how small apps take turns: pure.

If no order is asked for, an app that is alone in an installation sends all that is due. If several
small apps have actions, each may have operations with all processes of a queue but one, which stays
free for the others. If an action has a priority, an app that is alone may have operations with all
processes. Any further operations wait in the database, not in the broker, so that no message of
another app, and none of a higher priority, is behind them.

Among operations of one app that wait, a priority counts as hours that the operation has waited.
"""

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum


class Turn(StrEnum):
    """Whether an operation that must take turns waits for its own, or has it."""

    WAITS = "waits"
    # It is being sent, with the broker, or running.
    TAKEN = "taken"


class Sharing(StrEnum):
    """Why operations take turns on their queues, if they do."""

    NONE = "none"
    # An action has a priority, and the other small apps have no actions.
    PRIORITY = "priority"
    APPS = "apps"


# The range of priorities in a policy; 0 is the default, and the highest goes first.
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
# An operation goes before one whose priority is higher by one if it has waited this much longer.
A_POINT = timedelta(hours=1)
# The owner of the actions that every small app gets by itself: they make no app a busy one.
GIVEN_OWNER = "minutebook"


def head_start(priority: int) -> timedelta:
    """Return how much earlier an operation counts as recorded; negative for a low priority."""
    return priority * A_POINT


def share_of(capacity: int, sharing: Sharing = Sharing.APPS) -> int:
    """Return how many operations of a queue one app may have with the workers at once."""
    return max(1, capacity - 1 if sharing is Sharing.APPS else capacity)


def capacities(
    workers: Iterable[tuple[str, int | None]], sharing: Sharing = Sharing.APPS
) -> dict[str, int]:
    """Return how many operations run at once on each queue, of workers' queues and processes.

    Where apps share, a worker of several queues is divided evenly between them, so that one app
    cannot fill it by having its share of each.
    """
    found: dict[str, int] = {}
    for names, processes in workers:
        queues = [name.strip() for name in names.split(",")]
        parts = len(queues) if sharing is Sharing.APPS else 1
        for queue in queues:
            found[queue] = found.get(queue, 0) + max(1, (processes or 1) // parts)
    return found
