"""The processes of a world that are ours: daemons and workers."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from minutebook.lease import Interrupted
from minutebook.steps import StepContext
from models.store import ticks, workers
from models.store.notices import Notice
from models.worker_kinds import DELIVER_NOTICE, METATASK_SCHEDULE
from runtime.database import DATABASE_AWAY
from scheduler.loop import Daemon
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from scheduler.tz_release import OtherRelease
from tasks import backfill
from tasks.built_in import built_in_steps
from tasks.execute import run_attempt
from tasks.lease import Lease
from tasks.notices import deliver
from tasks.outgoing.failures import Undelivered
from tasks.registry import Registry
from tests.chaos import storm_steps
from tests.chaos.storm_steps import StormParameters
from tests.worlds.loom import Actor
from tests.worlds.stage import Waits

if TYPE_CHECKING:
    from tests.worlds.world import World

QUEUES = ("quick", "heavy", "default")
SEEN_EVERY_S = 20.0
REGISTRY = Registry((storm_steps.__name__,))


class Crew:
    def __init__(self, world: "World") -> None:
        self.world, self.loom = world, world.loom
        self.leases: dict[Actor, Lease] = {}
        # The ids of the notices that were delivered.
        self.told: list[str] = []

    # Daemons

    def daemon(self) -> None:
        """Tick every few seconds."""
        stop: Any = Waits(self.loom)
        # One of an older tz release ends, and is started again.
        with suppress(OtherRelease):
            Daemon(
                self.world.engine, self.world.settings, built_in_steps(), stop, self.loom.name
            ).run()

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
                self._is_seen(workers.Heartbeat(self.loom.name, ",".join(QUEUES), 1, slots=1))
            letter = self.world.post.deliver(QUEUES)
            if letter is None:
                self.loom.pause("look again", 1.0)
                continue
            given, engine, settings = letter.message, self.world.engine, self.world.settings
            with suppress(*DATABASE_AWAY):
                if given.task == DELIVER_NOTICE:
                    deliver(engine, settings, (given.id, given.attempt))
                elif given.task == METATASK_SCHEDULE:
                    backfill.process(engine, given.id)
                else:
                    message = (given.id, given.attempt)
                    run_attempt(engine, settings, REGISTRY, message, self.loom.name)

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
            context.progress(round(self.loom.elapsed_s), message="works")
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
        self.line(str(context.operation_id), context.attempt, step, what, repeatable=repeatable)

    def line(self, id: str, attempt: int, step: str, what: str, *, repeatable: bool) -> None:
        line = {"operation": id, "attempt": attempt, "step": step, "what": what}
        self.world.log.append(
            {**line, "repeatable": repeatable, "pid": self.loom.name, "at": self.loom.now}
        )

    def hand_over(self, notice: Notice, _settings: object) -> None:
        """Deliver a notice, unless its receiver is away."""
        self.loom.pause("tell")
        if self.world.faults.is_away("broker"):
            raise Undelivered("nobody listens", permanent=False)
        self.told.append(str(notice.id))
