"""The processes of a world: daemons, workers, workers that follow, and people."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.celery_rules import rules_of
from minutebook.lease import Interrupted
from minutebook.steps import StepContext
from models.errors import SchedulerError
from models.store import pauses, ticks, workers
from models.store.operations.external_send import Handed
from models.store.scope import WHOLE_INSTALLATION
from models.worker_kinds import DELIVER_NOTICE
from runtime.database import DATABASE_AWAY
from scheduler.loop import Daemon
from scheduler.on_demand.cancel import cancel
from scheduler.on_demand.restart import retry
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tasks.built_in import built_in_steps
from tasks.execute import run_attempt
from tasks.lease import Lease
from tasks.notices import deliver
from tasks.notices.undelivered import Undelivered
from tasks.registry import Registry
from tests.chaos import storm_steps
from tests.chaos.documents import random_document
from tests.chaos.editing import REFUSED, Editor
from tests.chaos.faults import Fault
from tests.chaos.storm_steps import StormParameters
from tests.worlds.loom import Actor
from tests.worlds.stage import Waits
from views import followers
from views.followers.documents import Beat, EndReport, TakeRequest
from views.installation import Installation

if TYPE_CHECKING:
    from tests.worlds.world import World

QUEUES = ("quick", "heavy", "default")
APPLICATION = "celery"
TASK = "shop.order"
SEEN_EVERY_S = 20.0
EVERYTHING = pauses.Target(pauses.PauseKind.ALL)
# What a follower may be told of an operation that it must not run, or not yet.
NOT_TAKEN = (SchedulerError,)


@lru_cache(maxsize=1)
def _registry() -> Registry:
    return Registry((storm_steps.__name__,))


class Crew:
    """What the processes of a world do."""

    def __init__(self, world: "World") -> None:
        self.world, self.loom = world, world.loom
        self.registry = _registry()
        self.leases: dict[Actor, Lease] = {}
        self.web = Installation()
        self.web.__dict__ |= {"settings": world.settings, "engine": world.engine}
        self.follower = followers.Follower(self.web, ("*",))

    def _name(self) -> str:
        return "" if self.loom.actor is None else self.loom.actor.name

    # Daemons

    def daemon(self) -> None:
        """Tick every few seconds."""
        stop: Any = Waits(self.loom)
        Daemon(self.world.engine, self.world.settings, built_in_steps(), stop, self._name()).run()

    def tick_once(self, at: datetime) -> None:
        """Make one tick at an instant, like `--once --at`."""
        sweeper = Sweeper(self.world.settings.worker.lease, self.world.settings.alert)
        with suppress(*DATABASE_AWAY):
            report = tick(self.world.engine, at, sweeper)
            with self.world.engine.begin() as connection:
                ticks.report(connection, "ahead", report.now, 1.0, report.figures())

    # Workers of ours

    def worker(self) -> None:
        """Run what the broker has."""
        seen_at = -SEEN_EVERY_S
        while True:
            if self.loom.elapsed_s >= seen_at + SEEN_EVERY_S:
                seen_at = self.loom.elapsed_s
                self._is_seen(workers.Heartbeat(self._name(), ",".join(QUEUES), 1, slots=1))
            letter = self.world.post.deliver(QUEUES)
            if letter is None:
                self.loom.pause("look again", 1.0)
                continue
            given, engine, settings = letter.message, self.world.engine, self.world.settings
            with suppress(*DATABASE_AWAY):
                if given.task == DELIVER_NOTICE:
                    deliver(engine, settings, (given.id, given.attempt))
                else:
                    message = (given.id, given.attempt)
                    run_attempt(engine, settings, self.registry, message, self._name())

    def _is_seen(self, seen: workers.Heartbeat) -> None:
        with suppress(*DATABASE_AWAY), self.world.engine.begin() as connection:
            workers.beat(connection, seen)

    @contextmanager
    def held(self, lease: Lease) -> Iterator[None]:
        """Keep a lease without a thread: the step itself beats while it works."""
        assert self.loom.actor is not None
        self.leases[self.loom.actor] = lease
        yield
        lease.is_over = True

    def spend(self, context: StepContext, wanted: StormParameters) -> bool:
        """Work for a while; return whether the step saw that it should stop."""
        assert self.loom.actor is not None
        lease = self.leases[self.loom.actor]
        ends_at = self.loom.elapsed_s + wanted.ms / 1000 * self.loom.random.choice((1, 1, 10))
        while (left_s := ends_at - self.loom.elapsed_s) > 0.001:
            self.loom.pause("work", min(left_s, 1.0))
            if 1_000.0 + self.loom.elapsed_s >= lease._beat_due_at():
                lease._beat()
            if wanted.heeds_stop and context.should_stop():
                return True
            due = lease.due()
            if due is None:
                continue
            lease.interrupted_for = due.why
            if not wanted.ignores_interrupts:
                lease.is_raised = True
                raise Interrupted
            self.loom.pause("grace", due.patience_s + due.grace_s)
            lease.cut_off(due.why)
        return False

    def note(self, context: StepContext, step: str, what: str, *, repeatable: bool) -> None:
        """Write the line of a step's effect."""
        self._line(str(context.operation_id), context.attempt, step, what, repeatable)

    def _line(self, id: str, attempt: int, step: str, what: str, repeatable: bool) -> None:
        line = {"operation": id, "attempt": attempt, "step": step, "what": what}
        self.world.log.append(
            {**line, "repeatable": repeatable, "pid": self._name(), "at": self.loom.now}
        )

    def hand_over(self, *_: object) -> None:
        """Deliver a notice, unless its receiver is away."""
        self.loom.pause("tell")
        if self.world.faults.is_away("broker"):
            raise Undelivered("nobody listens", permanent=False)

    # Workers of the application

    def link(self, *_: object) -> SimpleNamespace:
        """Return what stands for the connection to the application's broker."""
        return SimpleNamespace(ping=self._reach, send=self._send, connection=None)

    def _reach(self) -> None:
        self.loom.pause("ping")
        if self.world.faults.is_away("broker"):
            raise ConnectionRefusedError("the broker is away")

    def _send(self, one: Handed) -> None:
        self._reach()
        self.world.post.take(APPLICATION, one)
        if self.world.faults.strikes("answer of broker lost"):
            raise ConnectionResetError("the broker did not answer")

    def follow(self) -> None:
        """Take, keep and end tasks over HTTP, as a follower does."""
        while True:
            seen = workers.Heartbeat(self._name(), APPLICATION, 1, follows=(TASK,))
            self._is_seen(seen)
            letter = self.world.post.deliver({APPLICATION})
            if letter is None:
                self.loom.pause("look again", 2.0)
                continue
            with suppress(*NOT_TAKEN, *DATABASE_AWAY):
                self._follow(letter.message)

    def _follow(self, one: Handed) -> None:
        random = self.loom.random
        asked = TakeRequest(
            attempt=one.attempt, delivery=random.randbytes(8).hex(), worker=self._name()
        )
        taken = self._asked(lambda: followers.take(self.follower, str(one.id), asked))
        self._line(str(one.id), one.attempt, "celery_task", "start", True)
        for _ in range(random.choice((0, 0, 1, 3))):
            self.loom.pause("work", random.uniform(0.1, 5.0))
            beat = Beat(lease=taken.lease)
            with suppress(*DATABASE_AWAY, ConnectionError):
                if self._once(lambda: followers.beat(self.follower, str(one.id), beat)).stop:  # noqa: B023
                    self._line(str(one.id), one.attempt, "celery_task", "stopped", True)
                    report = EndReport(lease=taken.lease, outcome="cancelled")
                    self._asked(lambda: followers.end(self.follower, str(one.id), report))  # noqa: B023
                    return
        is_well = random.random() < 0.8
        self._line(str(one.id), one.attempt, "celery_task", "end" if is_well else "fail", True)
        outcome: Any = "success" if is_well else "failed"
        report = EndReport(lease=taken.lease, outcome=outcome, error=None if is_well else "no")
        self._asked(lambda: followers.end(self.follower, str(one.id), report))

    def _asked(self, ask: Any) -> Any:
        """Return the answer of web, which is asked again while it is away."""
        for _ in range(300):
            with suppress(*DATABASE_AWAY, ConnectionError):
                return self._once(ask)
            self.loom.pause("ask again", 2.0)
        raise SchedulerError("web is away for ten minutes")

    def _once(self, ask: Any) -> Any:
        self.loom.pause("ask")
        if self.world.faults.is_away("web"):
            raise ConnectionRefusedError("web is away")
        answer = ask()
        if self.world.faults.strikes("answer of web lost"):
            raise ConnectionResetError("web did not answer")
        return answer

    def web_lives(self) -> None:
        """Be seen every few seconds, as a web process is."""
        while True:
            if not self.world.faults.is_away("web"):
                with suppress(*DATABASE_AWAY), self.world.engine.begin() as connection:
                    workers.web_seen(connection, self.world.settings.worker.lease)
            self.loom.pause("be seen", 5.0)

    # People

    def admin(self) -> None:
        """Make the edits of the plan at their times."""
        for edit in self.world.plan.edits:
            if edit.at_s > self.loom.elapsed_s:
                self.loom.pause("think", edit.at_s - self.loom.elapsed_s)
            try:
                self._edit(edit)
            except REFUSED as error:
                self.world.tell(f"refused: {str(error).splitlines()[0]}")

    def _edit(self, edit: Fault) -> None:
        world, random = self.world, Random(edit.number)
        engine = world.engine
        self.world.tell(edit.kind)
        match edit.kind:
            case "pause all":
                world.journal.note("pause")
                with engine.begin() as connection:
                    pauses.begin(connection, EVERYTHING, None, "people", None)
            case "resume all":
                with engine.begin() as connection:
                    pauses.end(connection, EVERYTHING, "people")
            case "retry" | "cancel":
                rows = world.database.rows("SELECT id FROM operations ORDER BY id")
                if rows:
                    (id,) = random.choice(rows)
                    world.journal.note(edit.kind, operation=id)
                    act = retry if edit.kind == "retry" else cancel
                    act(engine, UUID(id), WHOLE_INSTALLATION, "people")
            case _:
                world.editor._edit(edit)


class WorldEditor(Editor):
    """Edits as in a storm, some of them of tasks of the application."""

    def __init__(self, world: "World") -> None:
        super().__init__(world, world.journal)  # type: ignore[arg-type]
        self.author = replace(self.author, celery=rules_of(world.settings))


def document_of(random: Random, name: str, now: datetime) -> dict[str, Any]:
    """Return a random document of an action, often and soon due."""
    document = random_document(random, name, now)
    if random.random() < 0.3:
        task = {"task": TASK, "queue": APPLICATION}
        document["operations"] = {"celery_task": task}
    return document
