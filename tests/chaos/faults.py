"""The schedule of a storm: its faults and edits, from its seed alone; repairs of the faults."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from threading import Event, Thread

# Kind of fault, its weight, and its longest duration in seconds (0: an instant).
COMMON = (
    ("kill daemon", 3, 0),
    ("kill both daemons", 1, 0),
    ("freeze daemon", 3, 6),
    ("stop daemon", 2, 0),
    ("kill child", 4, 0),
    ("kill worker", 1, 0),
    ("freeze worker", 3, 5),
    ("freeze child", 2, 5),
    ("stop worker", 1, 0),
    ("stop broker", 2, 5),
    ("kill broker", 2, 3),
    ("empty broker", 1, 3),
    ("freeze broker", 2, 5),
    ("flush broker", 2, 0),
    ("forge messages", 6, 0),
    ("set clock forward", 1, 0),
    ("set clock back", 1, 0),
    ("tick ahead", 1, 0),
)
OF_STORE = {
    "sqlite": (("lock database", 3, 5), ("fill disk of daemon", 2, 4)),
    "postgresql": (
        ("freeze database", 3, 5),
        ("restart database", 2, 2),
        ("crash database", 2, 2),
    ),
}
EDITS = (
    ("pause", 3),
    ("resume", 5),
    ("apply", 5),
    ("create", 4),
    ("delete", 1),
    ("run", 3),
)
# Gaps between two faults, and between two edits; some faults coincide.
MOST_S = 2.4
AT_ONCE = 0.2
# Faults of one of these do not overlap.
ALONE = ("broker", "database")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its time, its duration, and a number that selects the victim."""

    at_s: float
    kind: str
    number: int
    lasts_s: float = 0.0

    @property
    def victim(self) -> str:
        return self.kind.split()[-1]

    def __str__(self) -> str:
        lasting = f" for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.at_s:6.2f} {self.kind}{lasting} ({self.number % 100})"


# Takes a fault and the repair to run at its end.
Later = Callable[[Fault, Callable[[], None]], None]


def faults(seed: int, store: str, seconds: float) -> list[Fault]:
    """Return the faults of a storm of `seconds`, in order."""
    random = Random(f"faults {seed}")
    kinds = (*COMMON, *OF_STORE[store])
    free_from: dict[str, float] = {}
    found = []
    at = random.uniform(1.0, 3.0)
    while at < seconds:
        kind, _, longest = random.choices(kinds, [weight for _, weight, _ in kinds])[0]
        lasts = random.uniform(0.3, longest) if longest else 0.0
        fault = Fault(at, kind, random.randrange(2**32), lasts)
        if fault.victim not in ALONE or at >= free_from.get(fault.victim, 0.0):
            free_from[fault.victim] = at + lasts + 0.5
            found.append(fault)
        at += 0.0 if random.random() < AT_ONCE else random.uniform(0.1, MOST_S)
    return found


def edits(seed: int, seconds: float) -> list[Fault]:
    random = Random(f"edits {seed}")
    found = []
    at = random.uniform(1.0, 3.0)
    while at < seconds:
        kind = random.choices([kind for kind, _ in EDITS], [weight for _, weight in EDITS])[0]
        found.append(Fault(at, kind, random.randrange(2**32)))
        at += random.uniform(0.1, MOST_S / 2)
    return found


class Repairs:
    """Pending repairs, each at its time in its own thread: it may block on a frozen process."""

    def __init__(self) -> None:
        self._threads: list[Thread] = []
        self._ending = Event()
        self._error: BaseException | None = None

    def later(self, fault: Fault, repair: Callable[[], None]) -> None:
        """Repair `fault`, which begins now, at its end."""

        def wait() -> None:
            self._ending.wait(fault.lasts_s)
            try:
                repair()
            except BaseException as error:
                self._error = error

        self._threads.append(Thread(target=wait, name=fault.victim, daemon=True))
        self._threads[-1].start()

    def has(self, victim: str) -> bool:
        return any(one.name == victim and one.is_alive() for one in self._threads)

    def end(self) -> None:
        """Make all pending repairs now; raises the error of a failed one."""
        self._ending.set()
        for one in self._threads:
            one.join()
        if self._error is not None:
            raise self._error
