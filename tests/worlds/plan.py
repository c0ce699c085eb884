"""What befalls a world, all of it from its seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.chaos.faults import Fault

DAY_S = 86_400
# A fault, its weight, and the longest time that it lasts, in seconds.
FAULTS = (
    ("kill", 6, 0),
    ("freeze", 6, 2 * DAY_S),
    ("all asleep", 1, 2 * DAY_S),
    ("database away", 2, 60),
    ("writes away", 2, 60),
    ("broker away", 3, 90),
    ("publishing away", 1, 60),
    ("web away", 2, 120),
    ("empty broker", 2, 0),
    ("set clock forward", 1, 0),
    ("set clock back", 1, 0),
    ("tick ahead", 1, 0),
    ("machine clock", 1, 0),
    ("tz release", 1, 0),
    ("back up", 1, 0),
    ("restore", 1, 0),
)
EDITS = (
    ("pause", 3),
    ("resume", 5),
    ("apply", 5),
    ("create", 3),
    ("delete", 1),
    ("run", 3),
    ("retry", 2),
    ("cancel", 2),
    ("backfill", 2),
    ("pause all", 1),
    ("resume all", 2),
)
# What strikes single steps.
CHANCES = (
    "locked",
    "commit lost",
    "answer of commit lost",
    "answer of broker lost",
    "answer of web lost",
    "message lost",
    "message late",
    "message doubled",
)


@dataclass(frozen=True)
class Plan:
    """The actors and actions of a world, and its faults and edits with their times."""

    seed: int
    seconds: float
    # Whether the database's clock is left where it is in the end, perhaps behind what it showed.
    keeps_clock: bool
    daemons: int
    workers: int
    followers: int
    job_workers: int
    actions: tuple[int, ...]
    faults: tuple[Fault, ...]
    edits: tuple[Fault, ...]
    chances: tuple[tuple[str, float], ...]


def drawn(seed: int) -> Plan:
    random = Random(f"world {seed}")
    longest = {kind: most for kind, _, most in FAULTS}

    seconds = random.choice((8.0, 15.0, 30.0, 60.0))

    def at_random(kinds: Sequence[tuple[Any, ...]], pause_s: float) -> tuple[Fault, ...]:
        found, at_s = [], random.expovariate(1 / pause_s)
        while at_s < seconds:
            (kind, *_) = random.choices(kinds, [one[1] for one in kinds])[0]
            most_s = longest.get(kind, 0)
            # What may last for days mostly lasts for seconds.
            lasts_s = most_s ** random.random() if most_s >= DAY_S else random.uniform(0.0, most_s)
            found.append(Fault(at_s, kind, random.randrange(2**32), lasts_s))
            at_s += random.expovariate(1 / pause_s)
        return tuple(found)

    return Plan(
        seed,
        seconds,
        keeps_clock=random.random() < 0.3,
        daemons=random.choice((1, 2, 2, 3)),
        workers=random.choice((1, 2, 3)),
        followers=random.choice((0, 1, 2)),
        job_workers=random.choice((1, 1, 2)),
        actions=tuple(random.randrange(2**32) for _ in range(random.choice((1, 2, 2, 3, 5)))),
        faults=at_random(FAULTS, random.choice((5.0, 10.0, 20.0))),
        edits=at_random(EDITS, random.choice((5.0, 10.0, 30.0))),
        chances=tuple(
            (name, chance) for name in CHANCES if (chance := random.choice((0, 0, 0.01, 0.05)))
        ),
    )
