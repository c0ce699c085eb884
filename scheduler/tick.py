"""Run one tick: read, decide what is due, send, repair; docs/dev/tick.md."""

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa

from broker.celery_rules import application_of
from broker.external_link import queues_of
from broker.external_publish import why_left_alone
from broker.in_use import settings_in_use
from broker.sending import send_reserved
from models.errors import BrokerUnavailable
from models.notices import FindingKind
from models.store import audit, celery_queues, clock_steps, key_values, tick_work, ticks
from models.store.notices import alerting
from models.store.tick_work import Found, Repairs
from models.store.ticks import CLOCK_WAS_WRONG
from runtime.clock import monotonic
from runtime.database import unhurried
from runtime.db_retry import in_transaction
from runtime.logs.events import EventLog
from scheduler import downtime
from scheduler.batches import Batches
from scheduler.downtime import LONGEST_GAP
from scheduler.events.tick import EventTick
from scheduler.record import Recorded
from scheduler.sweep import Sweeper, release_lost
from scheduler.tz_release import OtherRelease, hold_release, why_not_decide

logger = EventLog("minutebook.tick")


def tick(
    engine: sa.Engine,
    now: datetime | None,
    sweeper: Sweeper,
    batch_size: int = 1000,
    longest_gap: timedelta = LONGEST_GAP,
) -> "TickReport":
    """Decide everything due up to `now` (aware UTC), send it, repair, and return what was done.

    If `now` is None, the database's clock decides. After a gap of more than `longest_gap`, the
    report counts what was due meanwhile. Raises SQLAlchemy's errors if the database is unavailable;
    committed work stays.
    """
    started = monotonic()
    found = look(engine, now, sweeper, longest_gap)
    report = TickReport(found.now, clock_set_back_s=found.set_back_s)
    if report.clock_set_back_s:
        sweeper.distrust()
    one = Tick(engine, report)
    one.look_at_broker(found)
    one.decide_if_due(found, batch_size)
    if monotonic() - started > sweeper.lease.total_seconds() / 4:
        # The database may have blocked meanwhile, and with it the workers' heartbeats.
        sweeper.distrust()
    one.repair(found.repairs, sweeper)
    one.look_at_application(found)
    one.note_brokers(found, sweeper)
    if found.was_down:
        report.downtime = downtime.report(engine)
    report.duration_ms = round((monotonic() - started) * 1000, 3)
    return report


def look(
    engine: sa.Engine, at: datetime | None, sweeper: Sweeper, longest_gap: timedelta = LONGEST_GAP
) -> Found:
    """Return the work to do, after setting right what a clock that was ahead wrote.

    If `at` is None, the database's clock decides. A jump forward is downtime. What is noticed about
    the clock and noted of it is one transaction.
    """
    spans = (sweeper.lease, sweeper.overdue)
    seen = partial(_seen, at=at, spans=spans, longest_gap=longest_gap)
    return in_transaction(engine, seen, unhurried)


def _seen(
    connection: sa.Connection,
    at: datetime | None,
    spans: tuple[timedelta, timedelta],
    longest_gap: timedelta,
) -> Found:
    # `now` is read here: a daemon that was frozen after an earlier reading would compare an old
    # value with another daemon's ticks and conclude that the clock was set back.
    first = found = tick_work.look(connection, at, *spans)
    if first.ahead > CLOCK_WAS_WRONG:
        # Another daemon that sees the same jump waits here, and then finds it set right.
        ticks.hold_last_now(connection)
        first = found = tick_work.look(connection, at, *spans)
        if first.ahead > CLOCK_WAS_WRONG:
            _set_right(connection, first)
            found = tick_work.look(connection, at, *spans)
    elif found.gap < timedelta(0):
        clock_steps.begin_events(connection, found.now)
    was_down = downtime.note(connection, first.last_now, found.now, longest_gap)
    key_values.set_value(connection, key_values.LAST_NOW, found.now.isoformat())
    set_back_s = first.ahead.total_seconds() if first.ahead > CLOCK_WAS_WRONG else 0.0
    return replace(found, set_back_s=set_back_s, was_down=was_down)


def _set_right(connection: sa.Connection, found: Found) -> None:
    """Correct what a wrong clock wrote, and note it."""
    clock_steps.set_right(connection, found.now)
    details = {"at": found.now.isoformat(), "seconds": found.ahead.total_seconds()}
    key_values.set_value(connection, key_values.CLOCK_SET_BACK, json.dumps(details))
    objects = {"clock": details}
    audit.write(
        connection, small_app_id=None, actor="daemon", verb="clock.set_right", objects=objects
    )
    logger.warning(
        "clock_set_back",
        "the clock was ahead by {by}: all is decided again from {since} on",
        found.ahead,
        found.now,
    )


@dataclass
class TickReport:
    """What one tick did; stored in `ticks` and logged as one line."""

    now: datetime
    decided: int = 0
    recorded: int = 0
    sent: int = 0
    missed: int = 0
    overtaken: int = 0
    # Because an operation of their action was running.
    skipped: int = 0
    quarantined: int = 0
    lost: int = 0
    released: int = 0
    # Queued operations whose messages the broker lost.
    lost_messages: int = 0
    notices: int = 0
    overdue: int = 0
    clock_set_back_s: float = 0.0
    clock_skew_s: float = 0.0
    broker_error: str | None = None
    # That of the Celery application's own broker.
    application_broker_error: str | None = None
    # Why this tick decided nothing: a newer release does.
    older_release: str | None = None
    # Who kept rows locked that this tick waited for in vain.
    locked: str | None = None
    events_error: str | None = None
    # The downtime that this tick ended, and the outcomes of its occurrences.
    downtime: dict[str, Any] | None = None
    duration_ms: float = 0.0
    # How long the messages that this tick decided took to send.
    publish_s: float = 0.0
    # How late it began, by the full minute; None at a start of the daemon.
    lag_s: float | None = None

    def figures(self) -> dict[str, Any]:
        """Return all non-zero figures as JSON."""
        left_out = {"now", "duration_ms"}
        return {key: value for key, value in vars(self).items() if value and key not in left_out}

    def add(self, recorded: Recorded) -> None:
        """Add recorded occurrences to the counts."""
        self.recorded += len(recorded.messages)
        self.missed += recorded.missed
        self.overtaken += recorded.overtaken
        self.skipped += recorded.skipped


@dataclass(frozen=True)
class Tick:
    """The parts of a tick, and its report."""

    engine: sa.Engine
    report: TickReport

    def look_at_broker(self, found: Found) -> None:
        """Release messages that the broker lost; if it is unavailable, this tick sends nothing."""
        try:
            lost = release_lost(self.engine, found.queued, found.listened)
            self.report.lost_messages = lost
        except BrokerUnavailable as error:
            self.report.broker_error = str(error)

    def look_at_application(self, found: Found) -> None:
        """Note how the queues of the Celery application grow, and whether its broker is down.

        Once it was, each tick asks it, whether there is something to send or not.
        """
        application = application_of(settings_in_use())
        watched = celery_queues.read(found.celery_queues)
        has_failed = self.report.broker_error or self.report.application_broker_error
        was_down = FindingKind.APPLICATION_BROKER_DOWN in found.brokers_down
        if has_failed or not (watched or was_down):
            return
        self.report.application_broker_error = why_left_alone(application)
        if self.report.application_broker_error is not None:
            return
        try:
            seen = queues_of(application, watched)
        except BrokerUnavailable as error:
            self.report.application_broker_error = str(error)
            return
        after = {name: watched[name].after(*its, found.now) for name, its in seen.items()}
        with self.engine.begin() as connection:
            celery_queues.store(connection, found.celery_queues, watched | after)

    def decide_if_due(self, found: Found, batch_size: int) -> None:
        """Decide what was found, unless a newer release decides in this database."""
        report = self.report
        report.older_release = why_not_decide(self.engine, *found.release)
        if found.has_due and report.older_release is None:
            self.decide_by_clock(batch_size)
        if found.has_events and report.older_release is None:
            self.decide_events()
        if report.older_release is not None:
            logger.error(
                "older_release", "this daemon decides nothing: {error}", report.older_release
            )

    def decide_by_clock(self, batch_size: int) -> None:
        """Decide, record and send what is due by the clock."""
        given = (self.engine, self.report.now, batch_size, self._is_outdated, self._take)
        batches = Batches(*given)
        batches.decide_all()
        self.report.decided = batches.decided
        self.report.quarantined += batches.quarantine.count
        self.report.locked = batches.locked

    def decide_events(self) -> None:
        """Decide, record and send occurrences of events."""
        events = EventTick(self.engine, self.report.now, self._is_outdated, self._take)
        events.decide_all()
        self.report.quarantined += events.quarantine.count
        self.report.events_error = events.error

    def _is_outdated(self, connection: sa.Connection) -> bool:
        """Return whether another daemon found meanwhile that this tick must not decide.

        Either its clock was ahead: what it decided would stay ahead of the right clock. Or the
        other daemon has a newer release.
        """
        try:
            hold_release(connection)
        except OtherRelease as error:
            self.report.older_release = str(error)
            return True
        return ticks.clock_went_back(connection, self.report.now, CLOCK_WAS_WRONG)

    def _take(self, recorded: Recorded) -> None:
        """Send what was recorded; a failed flush ends sending to that broker, not recording."""
        report = self.report
        report.add(recorded)
        if not recorded.messages:
            return
        began = monotonic()
        sent = send_reserved(self.engine, recorded.messages, report.broker_error)
        report.publish_s += monotonic() - began
        report.sent += sent.count
        report.broker_error = sent.error
        error = sent.application_error or report.application_broker_error
        report.application_broker_error = error

    def note_brokers(self, found: Found, sweeper: Sweeper) -> None:
        """Begin or end the findings that a broker does not answer."""
        errors = {
            FindingKind.BROKER_DOWN: self.report.broker_error,
            FindingKind.APPLICATION_BROKER_DOWN: self.report.application_broker_error,
        }
        if found.brokers_down != {kind for kind, error in errors.items() if error}:
            with self.engine.begin() as connection:
                alerting.note_brokers(connection, errors, sweeper.alerts)

    def repair(self, found: Repairs, sweeper: Sweeper) -> None:
        """Repair what was found, and what this tick made itself."""
        report = self.report
        found = found._replace(
            sendable=found.sendable or report.lost_messages > 0,
            # What was recorded and not sent may have ended, with a notice.
            notices=found.notices or report.recorded > report.sent,
        )
        send, overtook = report.broker_error is None, report.overtaken > 0
        swept = sweeper.sweep(self.engine, found, send=send, overtook=overtook)
        report.sent += swept.sent
        report.lost, report.released = swept.lost, swept.released
        report.notices, report.overdue = swept.notices, swept.overdue
        report.broker_error = report.broker_error or swept.error
        error = report.application_broker_error or swept.application_error
        report.application_broker_error = error
