"""How small apps that share a queue take turns: pure.

An app alone in an installation has all workers. Where several small apps have actions, each may
have so many operations of a queue with the workers at once that one process of the queue stays
free for the others. What an app has beyond this waits in the database, not in the broker, so that
no message of another app is behind it.
"""

from collections.abc import Iterable
from enum import StrEnum


class Turn(StrEnum):
    """Whether an operation that must take turns waits for its own, or has it."""

    WAITS = "waits"
    # It is being sent, with the broker, or running.
    TAKEN = "taken"


# The owner of the actions that every small app gets by itself: they make no app a busy one.
GIVEN_OWNER = "minutehand"


def share_of(capacity: int) -> int:
    """Return how many operations of a queue one app may have with the workers at once."""
    return max(1, capacity - 1)


def capacities(workers: Iterable[tuple[str, int | None]]) -> dict[str, int]:
    """Return how many operations run at once on each queue, of workers' queues and processes.

    A worker of several queues is divided evenly between them, so that one app cannot fill it by
    having its share of each.
    """
    found: dict[str, int] = {}
    for names, processes in workers:
        queues = [name.strip() for name in names.split(",")]
        for queue in queues:
            found[queue] = found.get(queue, 0) + max(1, (processes or 1) // len(queues))
    return found
