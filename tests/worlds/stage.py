"""What a world stands on: a database in memory, brokers that are lists, and clocks of its own."""

import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from types import FrameType, SimpleNamespace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import StaticPool

from models.errors import BrokerUnavailable
from models.store.operations.reserve import Message
from models.store.schema import migrate
from runtime.database import _begin_sqlite, _of_both, _set_up_sqlite
from tests.chaos.shifted import replace_clock
from tests.legal_moves import hold_to_legal_moves
from tests.worlds.loom import Actor, Loom
from tests.worlds.watch import follow_moves

# The queue of the application's own tasks.
APPLICATION = "celery"
# Where the code of a step begins: what only opens transactions does not name it.
OURS = ("scheduler.", "broker.", "tasks.", "services.", "models.", "tests.chaos.")


@lru_cache(maxsize=1)
def _template() -> bytes:
    """Return a migrated database that refuses illegal moves."""
    kept = sqlite3.connect(":memory:", check_same_thread=False)
    engine = _engine_of(kept)
    migrate(engine)
    hold_to_legal_moves(engine)
    with engine.begin() as connection:
        follow_moves(connection)
    return kept.serialize()


def _engine_of(
    connection: sqlite3.Connection, before: Callable[[sa.Connection], None] | None = None
) -> sa.Engine:
    engine = sa.create_engine(
        "sqlite://", creator=lambda: connection, poolclass=StaticPool, **_of_both()
    )
    event.listen(engine, "connect", _set_up_sqlite)
    if before is not None:
        event.listen(engine, "begin", before)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


class Faults:
    """What is away until when, and how often something strikes."""

    def __init__(self, loom: Loom, chances: Mapping[str, float]) -> None:
        self.loom = loom
        self.chances = dict(chances)
        self._until: dict[str, datetime] = {}

    def take_away(self, what: str, seconds: float) -> None:
        """Let something be away for a while."""
        self._until[what] = self.loom.later(seconds)

    def is_away(self, what: str) -> bool:
        return self._until.get(what, self.loom.now) > self.loom.now

    def strikes(self, what: str) -> bool:
        chance = self.chances.get(what, 0.0)
        return chance > 0 and self.loom.random.random() < chance

    def end(self) -> None:
        self._until, self.chances = {}, {}


class Database:
    """The database of a world: each transaction is one step, and may be lost."""

    store = "sqlite"
    # What is replaced for it, besides what every world replaces.
    PLACES: Mapping[str, Any] = {}

    def __init__(self, loom: Loom, faults: Faults) -> None:
        self.loom, self.faults = loom, faults
        # What its clock is ahead of the world's.
        self.shift_s = 0.0
        self._changes = 0
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.deserialize(_template())
        replace_clock(self._connection, self.now)
        self.engine = _engine_of(self._connection, self._before)
        loom.may_pause = lambda: not self._connection.in_transaction
        event.listen(self.engine, "commit", self._at_commit)

    def now(self) -> datetime:
        return self.loom.now + timedelta(seconds=self.shift_s)

    def rows(self, statement: str) -> list[Any]:
        """Read without a step."""
        return self._connection.execute(statement).fetchall()

    def lose_session(self, actor: Actor, frozen_s: float = 0.0) -> None:
        """Do nothing: no actor stops within a transaction."""

    def has_changed(self) -> bool:
        """Return whether something was written since the last call."""
        before, self._changes = self._changes, self._connection.total_changes
        return before != self._changes

    def copy(self) -> sqlite3.Connection | None:
        copy = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.backup(copy)
        return copy

    def restore(self, copy: sqlite3.Connection) -> None:
        """Let everything be as it was at a back-up."""
        copy.backup(self._connection)

    def close(self) -> None:
        self.engine.dispose()
        self._connection.close()

    def _before(self, connection: sa.Connection) -> None:
        if self.loom.actor is None:
            return
        self.loom.pause(_place(sys._getframe(1)))
        if self.faults.is_away("database"):
            raise _error("server closed the connection unexpectedly")
        if not _reads(connection) and self.faults.is_away("writes"):
            raise _error("attempt to write a readonly database")
        if not _reads(connection) and self.faults.strikes("locked"):
            raise _error("database is locked")

    def _at_commit(self, connection: sa.Connection) -> None:
        if self.loom.actor is None or _reads(connection):
            return
        if self.faults.strikes("commit lost"):
            raise _error("server closed the connection unexpectedly")
        if self.faults.strikes("answer of commit lost"):
            self._commit_now(connection)
            raise _error("server closed the connection unexpectedly")

    def _commit_now(self, _connection: sa.Connection) -> None:
        self._connection.commit()


def _reads(connection: sa.Connection) -> bool:
    return bool(connection.get_execution_options().get("read_only", False))


def _place(frame: FrameType | None) -> str:
    """Return the function that begins a transaction."""
    while frame is not None:
        module = frame.f_globals["__name__"]
        if module.startswith(OURS):
            return f"{module}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "transaction"


def _error(text: str) -> sa.exc.OperationalError:
    return sa.exc.OperationalError("", {}, sqlite3.OperationalError(text))


@dataclass(frozen=True)
class Letter:
    """A message in a broker, and from when it can be taken."""

    queue: str
    message: Any
    from_: datetime


class Post:
    """The brokers: letters in no order, which may be lost, doubled or late."""

    def __init__(self, loom: Loom, faults: Faults) -> None:
        self.loom, self.faults = loom, faults
        self.letters: list[Letter] = []
        # The operations and attempts of the messages that it accepted, also those that it lost.
        self.accepted: set[tuple[str, int]] = set()
        # Those of tasks of the application that it got once more.
        self.repeated: set[tuple[str, int]] = set()

    def publish(
        self, messages: Sequence[Message]
    ) -> Iterator[tuple[Sequence[Message], Mapping[str, str]]]:
        """Take messages, as `broker.app.publish` sends them."""
        for message in messages:
            self.loom.pause("publish")
            if self.faults.is_away("broker") or self.faults.is_away("publishing"):
                raise BrokerUnavailable("the broker takes nothing")
            self.take(message.queue, message)
            if self.faults.strikes("answer of broker lost"):
                raise BrokerUnavailable("the broker did not answer")
            yield [message], {}

    def take(self, queue: str, message: Any) -> None:
        """Put a message into a queue, unless it is lost."""
        key = (str(message.id), message.attempt)
        if queue == APPLICATION and key in self.accepted:
            self.repeated.add(key)
        self.accepted.add(key)
        if self.faults.strikes("message lost"):
            return
        late_s = self.loom.random.uniform(0.0, 60.0) if self.faults.strikes("message late") else 0
        letter = Letter(queue, message, self.loom.later(late_s))
        self.letters += [letter] * (2 if self.faults.strikes("message doubled") else 1)

    def deliver(self, queues: Collection[str]) -> Letter | None:
        """Return a letter of these queues and remove it; None if there is none, or no broker."""
        self.loom.pause("consume")
        if self.faults.is_away("broker"):
            return None
        there = [
            number
            for number, letter in enumerate(self.letters)
            if letter.queue in queues and letter.from_ <= self.loom.now
        ]
        return self.letters.pop(self.loom.random.choice(there)) if there else None

    def seen(
        self, _application: object, queues: Iterable[str]
    ) -> Mapping[str, tuple[int, int | None]]:
        """Return how many letters wait in each queue of the application, as `queues_of` does."""
        return {name: (count, None) for name, count in self.depths(set(queues)).items()}

    def waits(self) -> bool:
        """Return whether a letter is on its way that somebody takes."""
        return any(one.queue != APPLICATION for one in self.letters)

    def depths(self, queues: Collection[str]) -> Mapping[str, int]:
        """Return how many letters wait in each queue, as `broker.probe.depths` does."""
        self.loom.pause("count")
        if self.faults.is_away("broker"):
            raise BrokerUnavailable("the broker is away")
        return {queue: sum(one.queue == queue for one in self.letters) for queue in queues}


class Waits:
    """An event of the world: waiting for it lets time pass."""

    def __init__(self, loom: Loom) -> None:
        self.loom = loom

    def is_set(self) -> bool:
        return False

    def wait(self, timeout_s: float | None = None) -> bool:
        assert timeout_s is not None
        self.loom.pause("wait", max(timeout_s, 0.001))
        return False


def machine(loom: Loom) -> tuple[SimpleNamespace, type]:
    """Return what stands for `time` and `datetime` in `runtime.clock`."""

    class MachineTime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            skew = timedelta(0) if loom.actor is None else loom.actor.skew
            return (loom.now + skew).astimezone(tz or UTC)

    def sleep(seconds: float) -> None:
        loom.pause("sleep", seconds)

    return SimpleNamespace(monotonic=lambda: 1_000.0 + loom.elapsed_s, sleep=sleep), MachineTime
