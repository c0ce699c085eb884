"""What a verdict is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.store.installation_facts import Known, Waiting
from models.store.pauses import Pause
from models.store.workers import Readers
from services.daemon import Daemon

# Of actions that are due while no daemon ticks, so many are counted.
MOST_DUE = 1_000


@dataclass(frozen=True)
class Facts:
    """What the database knows of an installation."""

    known: Known
    daemon: Daemon | None
    # The reports of the last ticks with their instants, in order.
    ticks: Sequence[Mapping[str, Any]]
    readers: Readers
    waiting: Sequence[Waiting]
    # What newer runs have just taken the place of, by queue.
    overtaken: Sequence[Waiting] = ()
    # Actions that are due while no daemon ticks, at most MOST_DUE.
    due: int = 0
    # The pauses in force, and how many runs wait for the end of each.
    paused: Sequence[tuple[Pause, int]] = ()
