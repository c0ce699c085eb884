"""A world: an installation whose processes are actors of one thread, and what befalls them."""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from broker.in_use import use
from models.operation import ENDED
from runtime.config import load_settings
from scheduler.changes.change import create_all
from tests.chaos.clock import PASSED_S, Clock
from tests.chaos.facts import Facts, _line, instant_of, tables_by
from tests.chaos.faults import Fault
from tests.factories import set_back
from tests.servers import PostgreSQL
from tests.worlds.crew import Crew
from tests.worlds.laws import broken
from tests.worlds.loom import Actor, Loom
from tests.worlds.outside import Outside
from tests.worlds.people import People, document_of
from tests.worlds.plan import Plan
from tests.worlds.postgresql import PostgreSQLDatabase
from tests.worlds.stage import Database, Faults, Post, Waits, machine
from tests.worlds.watch import Watch

BEGAN = datetime(2027, 3, 1, 8, tzinfo=UTC)
# How long a world may take to become calm, by its own clock.
CALM_S = 9_000.0
# How long the actions go on without a fault.
SPELL_S = 20.0
# What may be sent for so long is sent. Two ticks, and the time of a reservation.
IDLE_S = 60.0
LONG_WAIT_S = 60.0
# How far behind a clock may be left in the end.
MOST_BEHIND_S = 900.0
ENVIRONMENT = {
    "SCHED_SCHEDULER_TICK_SECONDS": "5",
    "SCHED_WORKER_HEARTBEAT_S": "5",
    "SCHED_WORKER_LEASE_S": "15",
    "SCHED_WORKER_STOP_GRACE_S": "1",
    "SCHED_WORKER_CANCEL_GRACE_S": "1",
    "SCHED_WORKER_SOFT_LIMIT_S": "1",
    "SCHED_WORKER_HARD_LIMIT_S": "2",
    "SCHED_CELERY_TASKS": "*",
}
# Steps between the time of a fault and the fault.
MOST_STEPS = 12
# Steps of those who wait for work.
IDLE = {"wait", "look again", "be seen", "sleep", "consume", "start"}
# Notes of the journal that a restored back-up does not undo.
OF_CLOCK = {"clock", "ahead", "retry", "cancel", "pause"}
OPEN = f"state NOT IN ({', '.join(repr(str(state)) for state in sorted(ENDED))})"
SETTINGS = load_settings(Path("/nonexistent"), ENVIRONMENT)
# Lines of log that no fault explains.
UNFORESEEN = {"tick_failed", "sweep_failed", "notice_error", "end_not_stored"}


class Notes(list[dict[str, Any]]):
    """The journal of a storm, kept in memory."""

    path = Path()

    def note(self, what: str, **values: object) -> None:
        self.append(_line({"what": what, **values}))


@dataclass(frozen=True)
class Backup:
    """A copy of the database, and how long the log and the journal were then."""

    copy: Any
    lines: int
    notes: int


class WorldClock(Clock):
    """The database's clock, moved as a storm moves it."""

    def __init__(self, world: "World") -> None:
        super().__init__(world, world.journal)  # type: ignore[arg-type]
        self.world = world
        self._shown_from = world.loom.now.timestamp()

    def _write(self) -> None:
        self.world.database.shift_s = self.shift_s
        self.world.watch.note_clock()

    def end_or_keep(self, is_kept: bool) -> datetime:
        """End the faults of the clock; return when it shows something new, by the world's clock."""
        ahead_s = self._decided_s - self.world.loom.now.timestamp()
        behind_s = max(self._most_s, ahead_s) + PASSED_S - self.shift_s
        if is_kept and behind_s < MOST_BEHIND_S and not self._is_ticking_ahead():
            return self.world.loom.later(behind_s)
        self.end()
        return self.world.loom.now

    def _tick_ahead(self, fault: Fault) -> None:
        """Make one tick in the future, like `--at`."""
        if self._is_ticking_ahead():
            return
        since = self.world.loom.now.timestamp() + self.shift_s
        # Sometimes so far that the next tick must set right what this one wrote.
        random = Random(fault.number)
        at = since + random.uniform(1.0, random.choice((240.0, 240.0, 1_800.0)))
        self.journal.note("ahead", since=since, at=at)
        self._decided_s = max(self._decided_s, at)
        once = partial(self.world.crew.tick_once, datetime.fromtimestamp(at, UTC))
        self._ahead = self.world.loom.start("ahead", once)  # type: ignore[assignment]


class Alarm(logging.Handler):
    """Keeps what our processes logged as an unforeseen error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record that no fault of the world explains."""
        if getattr(record.msg, "event", "") in UNFORESEEN:
            self.heard.append(f"unforeseen: {logging.Formatter().format(record)}")


class World:
    """One installation and its plan: `run` returns the violations."""

    def __init__(self, plan: Plan, server: PostgreSQL | None = None) -> None:
        self.plan = plan
        random = Random(f"steps {plan.seed}")
        self.loom = Loom(random, BEGAN + timedelta(seconds=random.uniform(0, 86_400)))
        self.faults = Faults(self.loom, dict(plan.chances))
        its = (self.loom, self.faults)
        self.database = PostgreSQLDatabase(*its, server) if server else Database(*its)
        self.store, self.engine = self.database.store, self.database.engine
        self.post = Post(self.loom, self.faults)
        self.journal, self.log = Notes(), Notes()
        self.settings = SETTINGS
        self.alarm = Alarm()
        self.story: list[str] = []
        self._numbers: dict[str, int] = {}
        self.watch = Watch(self)
        self.crew, self.outside, self.people = Crew(self), Outside(self), People(self)
        self.clock = WorldClock(self)
        self._backup: Backup | None = None

    def now(self) -> datetime:
        return self.database.now()

    def tell(self, text: str) -> None:
        who = "" if self.loom.actor is None else f"{self.loom.actor.name}: "
        self.story.append(f"{self.loom.elapsed_s:7.1f} s, {self.now():%H:%M:%S} {who}{text}")

    def run(self) -> list[str]:
        """Live through the faults, then through a calm; return the violations."""
        log = logging.getLogger("minutebook")
        log.addHandler(self.alarm)
        with self._entered():
            try:
                return self._live()
            finally:
                self.loom.end()
                self.database.close()
                log.removeHandler(self.alarm)

    def _live(self) -> list[str]:
        self._create()
        admin = self.loom.start("admin", self.people.admin)
        for fault in self.plan.faults:
            self._go_on(self.loom.begun_at + timedelta(seconds=fault.at_s))
            # Where time stands still, somebody is in the midst of something.
            self._take(fault.number % MOST_STEPS)
            self._strike(fault)
        self._go_on(self.loom.begun_at + timedelta(seconds=self.plan.seconds))
        admin.kill()
        self._make_up()
        found = self._calm()
        self.clock.close()
        return found + self.watch.broken + self.alarm.heard + broken(self)

    def _make_up(self) -> None:
        """End all faults, let the actions go on for a while, and then end them."""
        self.faults.end()
        passes_at = self.clock.end_or_keep(self.plan.keeps_clock)
        self.people.act(Fault(0.0, "resume all", 0))
        self.loom.skew = timedelta(seconds=self.database.shift_s)
        for one in self.loom.actors:
            if one.release != self.loom.release:
                one.kill()
            one.wakes_at, one.skew = min(one.wakes_at, self.loom.later(5.0)), self.loom.skew
        self.tell("no more faults")
        self._go_on(max(passes_at, self.loom.later(SPELL_S)))
        self.people.end_all()
        self.tell("the actions have ended")

    def _create(self) -> None:
        """Store the actions: one while the clock was ahead, some with missed occurrences."""
        for number, seed in enumerate(self.plan.actions):
            random = Random(seed)
            ahead_s = random.uniform(360.0, 86_400.0) if random.random() < 0.2 else 0.0
            with self.clock.ahead(ahead_s):
                document = document_of(random, f"action {number}", self.now())
                (made,) = create_all(self.engine, [document], self.people.author)
                if random.random() < 0.4:
                    since = self.now() - timedelta(seconds=random.randint(30, 1_200))
                    set_back(self.engine, made.uid, since)

    def _go_on(self, until: datetime) -> None:
        while self.loom.now < until:
            self._step(until)

    def _take(self, steps: int) -> None:
        for _ in range(steps):
            self._step(self.loom.later(60.0))

    def _step(self, until: datetime) -> None:
        self._tend()
        self.loom.go_on(until)
        self.watch.look()

    def _tend(self) -> None:
        """Start again what ended, as a service manager does."""
        plan, crew, outside = self.plan, self.crew, self.outside
        wanted = (
            ("daemon", plan.daemons, crew.daemon),
            ("worker", plan.workers, crew.worker),
            ("follower", plan.followers, outside.follow),
            ("jobs", plan.job_workers, outside.mind_jobs),
            ("web", 1, outside.web_lives),
        )
        there = Counter(one.role for one in self.loom.actors if one.is_alive)
        for role, count, act in wanted:
            for _ in range(count - there[role]):
                number = self._numbers[role] = self._numbers.get(role, 0) + 1
                self.loom.start(f"{role} {number}", act, 5.0)

    def _calm(self) -> list[str]:
        ended_at, until = self.now(), self.loom.later(CALM_S)
        while self.loom.now < until:
            self._go_on(self.loom.later(5.0))
            idle = self._idle()
            if idle:
                return idle
            if self._has_ticked(ended_at + timedelta(seconds=8)) and not self._next_at():
                return []
            self._pass_time()
        columns = "id, state, task, attempt, not_before, waiting_for, reason"
        left = self.database.rows(f"SELECT {columns} FROM operations WHERE {OPEN} LIMIT 3")
        return [f"no calm within {CALM_S:g} s: {left}"]

    def _has_ticked(self, after: datetime) -> bool:
        """Return whether the last tick is one after that, which no row kept waiting."""
        newest = "SELECT now, CAST(report AS text) FROM ticks ORDER BY id DESC LIMIT 1"
        for now, report in self.database.rows(newest):
            return instant_of(now) > after and '"locked"' not in report
        return False

    def _next_at(self) -> datetime | None:
        """Return when something that is open may be sent; None if nothing is."""
        found = [
            self.database.rows(f"SELECT min({column}) FROM {table} WHERE {of_open}")
            for table, column, of_open in (
                ("operations", "CASE WHEN waiting_for IS NULL THEN not_before END", OPEN),
                ("operations", "recorded_at", OPEN),
                # It is told half a minute later.
                ("findings", "began_at", "kind = 'action_missed' AND ended_at IS NULL"),
                ("notices", "not_before", "state = 'owed'"),
            )
        ]
        ((first,),), ((waits,),), ((untold,),), ((told,),) = found
        known = [instant_of(one) for one in (first, told) if one]
        return min(known, default=self.now() if waits or untold else None)

    def _pass_time(self) -> None:
        """Let time jump if nothing has a reason to go on."""
        at = self._next_at()
        # A queued job is offered to whoever asks next.
        goes_on = "state = 'running' OR state = 'queued' AND task = 'job'"
        is_running = self.database.rows(f"SELECT 1 FROM operations WHERE {goes_on} LIMIT 1")
        left_s = (at - self.now()).total_seconds() if at else 0.0
        if left_s > LONG_WAIT_S and not is_running and not self.post.waits():
            self.loom.now = self.loom.later(left_s)

    def _idle(self) -> list[str]:
        """Return what could run and neither runs nor is on its way."""
        late = self.now() - timedelta(seconds=IDLE_S)
        columns = "id, state, attempt, not_before, sendings"
        found = self.database.rows(
            f"SELECT {columns} FROM operations WHERE state IN ('pending', 'queued')"
            f" AND waiting_for IS NULL AND not_before < '{late:%Y-%m-%d %H:%M:%S.%f}' LIMIT 3"
        )
        found += self._stranded()
        on_their_way = {str(one.message.id) for one in self.post.letters}
        return [f"idle: {row}" for row in found if str(row[0]) not in on_their_way]

    def _stranded(self) -> list[Any]:
        """Return what still waits for an operation that ended a while ago."""
        late = self.now() - timedelta(seconds=IDLE_S)
        return self.database.rows(
            "SELECT one.id, one.state, one.attempt, one.waiting_for FROM operations AS one"
            " JOIN operations AS other ON other.id = one.waiting_for"
            " WHERE one.state IN ('pending', 'queued')"
            f" AND other.finished_at < '{late:%Y-%m-%d %H:%M:%S.%f}' LIMIT 3"
        )

    def _strike(self, fault: Fault) -> None:
        victims = [one for one in self.loom.actors if one.name != "admin" and one.is_alive]
        if not victims:
            return
        busy = [one for one in victims if one.step not in IDLE]
        # Half of the time, somebody in a step of theirs.
        at_work = [one for one in busy if one.step == "work" and fault.number % 2]
        victims = at_work or busy or victims
        victim = victims[fault.number // 2 % len(victims)]
        of_one = {"kill": self._kill, "freeze": self._freeze, "machine clock": self._set_machine}
        of_all = {
            "all asleep": self._sleep,
            "empty broker": self._empty,
            "tz release": self._release,
            "back up": self._back_up,
            "restore": self._restore,
            **self.clock.acts(),
        }
        if fault.kind in of_one:
            said = of_one[fault.kind](victim, fault)
            self.tell(f"{victim.name}, about to {victim.step}, {said}")
            return
        self.tell(f"{fault.kind} for {fault.lasts_s:.1f} s" if fault.lasts_s else fault.kind)
        if fault.kind in of_all:
            of_all[fault.kind](fault)
        else:
            self.faults.take_away(fault.kind.split()[0], fault.lasts_s)

    def _kill(self, victim: Actor, _fault: Fault) -> str:
        victim.kill()
        return "is killed"

    def _freeze(self, victim: Actor, fault: Fault) -> str:
        victim.wakes_at = max(victim.wakes_at, self.loom.later(fault.lasts_s))
        self.database.lose_session(victim, fault.lasts_s)
        return f"freezes for {fault.lasts_s:.1f} s"

    def _set_machine(self, victim: Actor, fault: Fault) -> str:
        victim.skew = timedelta(seconds=Random(fault.number).uniform(-600, 600))
        return f"has a machine whose clock is off by {victim.skew.total_seconds():+.0f} s"

    def _sleep(self, fault: Fault) -> None:
        for one in self.loom.actors:
            self.database.lose_session(one, fault.lasts_s)
        self.loom.now = self.loom.later(fault.lasts_s)

    def _empty(self, _fault: Fault) -> None:
        self.post.letters.clear()

    def _release(self, _fault: Fault) -> None:
        """Let processes that start from now on have a newer tz release."""
        self.loom.release += 1

    def _back_up(self, _fault: Fault) -> None:
        copy = self.database.copy()
        if copy is not None:
            self._backup = Backup(copy, len(self.log), len(self.journal))

    def _restore(self, _fault: Fault) -> None:
        """Stop all processes, restore the back-up, and start them again."""
        if self._backup is None:
            return
        for one in self.loom.actors:
            if one.name != "admin":
                one.kill()
        self.database.restore(self._backup.copy)
        # What has happened since is undone, except for what the clock showed.
        del self.log[self._backup.lines :]
        since = self.journal[self._backup.notes :]
        self.journal[self._backup.notes :] = [one for one in since if one["what"] in OF_CLOCK]
        self.watch.forget()

    def facts(self) -> Facts:
        return Facts(tables_by(self.database.rows), list(self.log), list(self.journal))

    def _tz_release(self) -> str:
        """Return the tz release of the running process; of none, the newest."""
        actor = self.loom.actor
        return f"2027{(self.loom if actor is None else actor).release:03}"

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Let our code see the world in place of the machine, its threads and its brokers."""
        time, date = machine(self.loom)
        waits = partial(Waits, self.loom)
        system = SimpleNamespace(kill=lambda *_: self.loom.die(), getpid=lambda: 1)
        # Not those that say who goes on: a module that is loaded late may draw an id.
        draws = Random(f"ids {self.plan.seed}").randbytes
        places: dict[str, Any] = {
            "runtime.clock.time": time,
            "runtime.clock.datetime": date,
            "runtime.db_retry.Event": waits,
            "runtime.database.Event": waits,
            "broker.app.publish": self.post.publish,
            "broker.external_publish.link_to": self.outside.link,
            "broker.external_publish._left_alone": {},
            "runtime.logs.events._said_at": {},
            "scheduler.sweep.depths": self.post.depths,
            "scheduler.tick.queues_of": self.post.seen,
            "minutebook.lease.monotonic": time.monotonic,
            "minutebook.lease.Keeper.held": lambda lease: self.crew.held(lease),  # noqa: PLW0108
            "tasks.lease.os": system,
            "scheduler.tz_release.tz_release": self._tz_release,
            "tasks.notices.hand_over": self.crew.hand_over,
            # Ids and secrets.
            "uuid.os": SimpleNamespace(urandom=draws),
            "random._urandom": draws,
            **self.database.PLACES,
            "tests.chaos.storm_steps._note": self.crew.note,
            "tests.chaos.storm_steps._spend": self.crew.spend,
        }
        use(self.settings)
        with ExitStack() as stack:
            for place, instead in places.items():
                stack.enter_context(patch(place, instead))
            yield
