"""What befalls a world, all of it from its seed, and the search for the least of it that fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeVar

from tests.chaos.faults import Fault

T = TypeVar("T")

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

    @property
    def size(self) -> int:
        """How much there is in it."""
        lists = (self.actions, self.faults, self.edits, self.chances)
        roles = (self.daemons, self.workers, self.followers, self.job_workers)
        return sum(map(len, lists)) + sum(roles)


def drawn(seed: int) -> Plan:
    """Return the plan of a seed."""
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


# How many of a role a world cannot do without.
LEAST = (("followers", 0), ("job_workers", 1), ("workers", 1), ("daemons", 1))


def shrunk(plan: Plan, fails: Callable[[Plan], bool], most: int = 150) -> Plan:
    """Return a smaller plan that still fails, after at most so many tries."""
    left = most

    def still(smaller: Plan) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(smaller)

    before = plan.size + 1
    while plan.size < before and left > 0:
        before = plan.size
        for name in ("chances", "faults", "edits", "actions"):
            least = 1 if name == "actions" else 0
            plan = _with_fewer(plan, name, least, still)
        for name, least in LEAST:
            while getattr(plan, name) > least:
                smaller = replace(plan, **{name: getattr(plan, name) - 1})
                if not still(smaller):
                    break
                plan = smaller
    return plan


def _with_fewer(plan: Plan, name: str, least: int, still: Callable[[Plan], bool]) -> Plan:
    """Leave out parts of a list, halves first, then smaller ones."""
    size = len(getattr(plan, name))
    while size >= 1:
        start = 0
        while start < len(getattr(plan, name)):
            items = getattr(plan, name)
            fewer = items[:start] + items[start + size :]
            smaller = replace(plan, **{name: fewer})
            if len(fewer) >= least and still(smaller):
                plan = smaller
            else:
                start += size
        size //= 2
    return plan
