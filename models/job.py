"""Jobs: what a worker in any language gets, and how jobs are named."""

import hashlib
from dataclasses import dataclass, field

from pydantic import JsonValue

# The step, and the task of its operations: the broker never gets it.
JOB = "job"
# The prefix of a queue's name where queues of all kinds are listed.
QUEUE_PREFIX = "job:"
ID_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Job:
    """A job as plans keep it: the URL of the work, and what its worker gets with it."""

    url: str
    meta: dict[str, JsonValue] = field(default_factory=dict)


def id_of(url: str) -> str:
    """Return the id of a job: the first 12 hex digits of the SHA-1 of its URL."""
    return hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()[:ID_DIGITS]


def listed_queue(queue: str) -> str:
    """Return the name of a queue of jobs where queues of all kinds are listed."""
    return QUEUE_PREFIX + queue
