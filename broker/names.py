"""Names in the broker: the contract between the scheduler and the workers."""

from models.errors import Refused
from models.worker_kinds import OURS

QUICK = "quick"
HEAVY = "heavy"
DEFAULT = "default"
# Their names where queues of all kinds of worker are listed.
OURS_BY_NAME = {name: OURS.listed(name) for name in (QUICK, HEAVY, DEFAULT)}

# The sender that Celery's header `origin` names.
ORIGIN = "minutebook"
# With Celery's default exchanges, the monitors of an application would show our workers.
CONTROL_EXCHANGE = "minutebook"
EVENT_EXCHANGE = "minutebook.events"


def parse_queues(text: str) -> str:
    """Return the queues without spaces and repetitions; raises Refused for an empty name."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise Refused(f"--queues {text!r}: separate names by commas, such as quick,heavy")
    return ",".join(dict.fromkeys(names))
