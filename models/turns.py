"""How operations that wait for a queue are ordered, and how small apps take turns: pure.

If no order is asked for, an app that is alone in an installation sends all that is due. If several
small apps have actions, or an action has a priority, no more operations are with the workers of a
queue than they have processes, except that each app may have one there. Any further operations wait
in the database, not in the broker, so that few messages of another app, and none of a higher
priority, are before one.

A process that is free goes to the app that holds the fewest. An app thus borrows what the others do
not use, and gives it back with the next process that becomes free; only a reserve is never lent.
Among operations of one app that wait, a priority counts as hours that the operation has waited.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from models.values import instant_or_dash


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
# So many operations that hold the processes of a queue are named.
MOST_NAMED = 3


def head_start(priority: int) -> timedelta:
    """Return how much earlier an operation counts as recorded; negative for a low priority."""
    return priority * A_POINT


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker: its name, its queues, and how many operations it runs at once."""

    name: str
    queues: frozenset[str]
    processes: int


@dataclass(frozen=True, slots=True)
class Held:
    """Operations of a small app that were sent to a queue, or run on a worker."""

    app: int
    queue: str
    # The name of the worker, None for those that were sent.
    worker: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Line:
    """What can be had of a queue now: see `line_of`."""

    # Free processes that no operation on its way will take.
    free: int
    # How many processes one app may hold.
    most: int
    # How many processes of the queue's workers each app holds, or will soon.
    held: Mapping[int, int]

    def may_have(self, app: int) -> int:
        """Return how many more operations an app may have with the workers, others apart."""
        held = self.held.get(app, 0)
        # One message of each app keeps its place in the broker.
        return max(int(held == 0), min(self.free, self.most - held))


def line_of(queue: str, workers: Iterable[Worker], held: Iterable[Held], reserve: int) -> Line:
    """Return what can be had of a queue; each app alone leaves `reserve` processes free.

    A process of several queues counts for each of them: it takes whatever comes first. What runs on
    a worker that is gone takes no process of those that live.
    """
    ours = {one.name: one for one in workers if queue in one.queues}
    processes = sum(one.processes for one in ours.values())
    apps: dict[int, int] = {}
    for one in held:
        is_of_queue = one.queue == queue and (one.worker is None or not ours)
        if is_of_queue or one.worker in ours:
            apps[one.app] = apps.get(one.app, 0) + one.count
    free = max(0, processes - sum(apps.values()))
    return Line(free, max(1, processes - reserve), apps)


def next_turns(line: Line, waiting: Mapping[int, Sequence[UUID]], after: int = 0) -> list[UUID]:
    """Return which operations get a turn, of those that wait, by small app and in order.

    The app that holds the fewest processes is served first; of equals, the next one by number after
    `after`, the app that was served last.
    """
    held, free, given = dict(line.held), line.free, list[UUID]()
    left = {app: list(ids) for app, ids in waiting.items()}
    while True:
        now = Line(free, line.most, held)
        may = [app for app, ids in left.items() if ids and now.may_have(app)]
        if not may:
            return given
        after = min(may, key=lambda app: (held.get(app, 0), app <= after, app))
        given.append(left[after].pop(0))
        held[after] = held.get(after, 0) + 1
        free = max(0, free - 1)


@dataclass(frozen=True, slots=True)
class Holder:
    """An operation for which another one waits."""

    id: UUID
    action: str
    state: str
    # Since when it runs, and where.
    since: datetime | None = None
    worker: str | None = None

    @property
    def standing(self) -> str:
        """How it stands, in words."""
        if self.worker is None:
            return f"is {self.state} itself"
        return f"has been running since {instant_or_dash(self.since)} on {self.worker}"


@dataclass(frozen=True, slots=True)
class Holders:
    """What an operation waits for: those of its own small app, and how many of others."""

    # The one that runs for the longest comes first.
    own: tuple[Holder, ...] = ()
    others: int = 0

    def in_words(self) -> str:
        """Return which operations hold the processes of a queue, of others only how many."""
        named = [f'{one.id} of "{one.action}", which {one.standing}' for one in self.own]
        more = len(named) - MOST_NAMED
        named[MOST_NAMED:] = [f"{more} more of its small app"] if more > 0 else []
        named += [f"{self.others} of other small apps"] if self.others else []
        return f"its processes are held by {'; '.join(named)}" if named else ""


NOBODY = Holders()
