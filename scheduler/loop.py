"""Run the daemon's loop: wait for the full minute or a signal, tick, report."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import sqlalchemy as sa

from minutebook.steps import Steps
from models.store import ticks
from models.store.clocks import read_both
from models.store.schema import check_schema
from models.values import format_instant
from runtime.clock import monotonic, utc_now
from runtime.config import Settings
from runtime.database import DATABASE_AWAY, each_committed, plan_each_time, reading
from runtime.logs.events import EventLog
from runtime.skew import SkewWatch
from runtime.stopping import Stop
from scheduler.changes.default_actions import migrate
from scheduler.ping import Ping
from scheduler.sweep import Sweeper
from scheduler.systemd_notify import ALIVE, READY, notify, status
from scheduler.tick import TickReport, tick
from scheduler.tz_release import adopt_release

logger = EventLog("minutebook.daemon")

T = TypeVar("T")

DATABASE_RETRY_S = 2.0
# The loop reads the database's clock at least this often.
LONGEST_WAIT_S = 10.0
# A loop that wakes up later than this was suspended, and perhaps the workers were too.
FROZEN_S = 5.0
# The name of a log event, and its text.
Event = tuple[str, str]
SLOW = ("database_slow", "the database did not respond for {seconds:.1f} s")
JUMPED = ("clock_jumped", "the clock jumped by {seconds:+.1f} s")
SUSPENDED = ("daemon_suspended", "this daemon was suspended for {seconds:.0f} s")


def daemon_name() -> str:
    """Return this daemon's name: host and pid."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass
class Daemon:
    """A scheduler in this process; an idle one ends within a second after `stop` is set.

    `steps` are those that the daemon knows: Minutebook's own.
    """

    engine: sa.Engine
    settings: Settings
    steps: Steps
    stop: Stop = field(default_factory=Stop)
    name: str = field(default_factory=daemon_name)
    # Called once, before the first tick.
    at_start: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        plan_each_time(self.engine)
        self.sweeper = Sweeper(self.settings.worker.lease, self.settings.alert)
        # Often enough to detect every database outage that ages a healthy lease.
        self._longest_wait_s = min(LONGEST_WAIT_S, self.settings.worker.lease_s / 4)
        self.ping = Ping(self.settings.alert.ping_url.get_secret_value())
        self.machine_clock = SkewWatch()
        # The database's clock minus the monotonic clock.
        self._clock_leads_s: float | None = None
        # The full minute that the loop waits for; None before its first tick.
        self._due_at: datetime | None = None

    def prepare(self) -> None:
        """Check the schema and adopt this release; migrate an embedded database first.

        Raises SchedulerError or SQLAlchemy's errors.
        """
        if not self.settings.database_url.get_secret_value():
            migrate(self.engine, self.steps)
        with reading(self.engine) as connection:
            check_schema(connection)
        adopt_release(self.engine)
        # Preparing may have waited for locks, and heartbeats may have waited as well.
        self.sweeper.distrust()

    def run(self) -> None:
        """Tick at once, then at every full minute by the database's clock, until `stop` is set."""
        self._until_it_works(self.prepare)
        self.at_start()
        next_at: datetime | None = None
        while not self.stop.is_set():
            if next_at is None or self._until_it_works(partial(self._wait_until, next_at)):
                self._until_it_works(self._tick_or_log)
                notify(READY, ALIVE)
            self._due_at = next_at = self._until_it_works(self._next_minute)

    def tick_once(self, at: datetime | None = None) -> TickReport:
        """Tick once with `at` as `now` (default: the database's clock) and store the report."""
        how = self.settings.scheduler
        given = (self.sweeper, how.batch_size, how.longest_gap)
        report = tick(self.engine, at, *given)
        if self.machine_clock.is_off:
            report.clock_skew_s = self.machine_clock.skew_s
        if self._due_at is not None:
            report.lag_s = (report.now - self._due_at).total_seconds()
        with each_committed(self.engine) as connection:
            ticks.report(connection, self.name, report.now, report.duration_ms, report.figures())
        notify(status(f"last tick {_log(report)}"))
        return report

    def _tick_or_log(self) -> None:
        """Tick; an unexpected error ends this tick, not the loop."""
        try:
            report = self.tick_once()
            if report.broker_error is None:
                self.ping.send()
        except DATABASE_AWAY:
            raise
        except Exception:
            logger.exception("tick_failed", "this tick failed; the next one catches up")

    def _next_minute(self) -> datetime:
        step = self.settings.scheduler.tick_seconds
        now = self._read_clock()
        past = (now.minute * 60 + now.second) % step
        return now.replace(microsecond=0) + timedelta(seconds=step - past)

    def _wait_until(self, at: datetime) -> bool:
        """Return True once the database's clock reaches `at`, False if stopped before."""
        while not self.stop.is_set():
            asked = monotonic()
            left = (at - self._read_clock()).total_seconds()
            if left <= 0:
                self._distrust_if(-left, FROZEN_S, SUSPENDED)
                return True
            if left > self.settings.scheduler.tick_seconds:
                # The clock was set back: `at` may be a year away.
                self.sweeper.distrust()
                return True
            pause_s = min(left, self._longest_wait_s)
            self.stop.wait(pause_s)
            # A stop ends the wait early.
            late_s = max(monotonic() - asked - pause_s, 0.0)
            self._distrust_if(late_s, FROZEN_S, SUSPENDED)
        return False

    def _read_clock(self) -> datetime:
        """Return the database's clock, read in a write transaction.

        If writes have to wait, heartbeats wait too; a clock change also ages them. Either makes
        healthy leases look old.
        """
        asked = monotonic()
        with self.engine.begin() as connection:
            now, skew_s = read_both(connection)
        answered = monotonic()
        # Here and not in a thread: a loop that hangs is to be started anew.
        notify(ALIVE)
        self.machine_clock.note(skew_s)
        self.machine_clock.note_wall(utc_now().timestamp(), answered)
        before, self._clock_leads_s = self._clock_leads_s, now.timestamp() - answered
        jumped_s = 0.0 if before is None else self._clock_leads_s - before
        self._distrust_if(answered - asked, self._longest_wait_s, SLOW)
        self._distrust_if(jumped_s, self._longest_wait_s, JUMPED)
        return now

    def _distrust_if(self, seconds: float, most: float, event: Event) -> None:
        """Log an event that took more than `most` seconds: the workers may be cut off as well."""
        if abs(seconds) > most:
            logger.warning(*event, seconds)
            self.sweeper.distrust()

    def _until_it_works(self, act: Callable[[], T]) -> T | None:
        """Repeat `act` while the database is unavailable; return None if stopped meanwhile."""
        while not self.stop.is_set():
            try:
                return act()
            except DATABASE_AWAY as error:
                logger.error(
                    "database_unavailable",
                    "database unavailable, trying again: {error}",
                    _first_line(error),
                )
                notify(ALIVE, status("database unavailable"))
                self.stop.wait(DATABASE_RETRY_S)
                # If the next try succeeds, the workers had no database until now.
                self.sweeper.distrust()
        return None


def _first_line(error: sa.exc.SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).strip().split("\n")[0]


def _log(report: TickReport) -> str:
    """Log a tick; return the same line."""
    # A downtime has its own line; `/metrics` shows the durations.
    left_out = {"downtime", "publish_s", "lag_s"}
    shown = {key: value for key, value in report.figures().items() if key not in left_out}
    figures = "".join(f"{key}={value} " for key, value in shown.items())
    at = format_instant(report.now)
    logger.info(
        "tick", "tick {now} {figures}({duration_ms:.0f} ms)", at, figures, report.duration_ms
    )
    return f"{at} {figures}({report.duration_ms:.0f} ms)"
