"""Run one tick: claim what is due, decide, record, send, sweep; docs/explanation/tick.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_reserved
from minutebook.steps import Steps
from models.action.plan import NOTHING_PLANNED, Broken, Plan, sound
from models.errors import BrokerUnavailable
from models.parsing import Calendars
from models.sql import read_clock
from models.store import actions, ticks
from models.store.actions import cursors
from models.store.operations.outbox import Message
from models.store.tenants.closing import calendars_for
from models.store.ticks import CLOCK_WAS_WRONG
from runtime.clock import monotonic
from runtime.database import is_locked, is_of_no_row, reading, wait_briefly
from runtime.logs.events import EventLog
from scheduler import downtime, lost_messages
from scheduler.changes.adoption import adopt_edit, has_to_be_adopted, reason_of, set_aside
from scheduler.changes.revisions import action_ref
from scheduler.clock_guard import look
from scheduler.decided_once import DecidedOnce
from scheduler.decision import MOST_SENT, Decision
from scheduler.events.tick import EventTick
from scheduler.from_end import Ends, ends_for
from scheduler.kernel_release import OtherRelease, hold_release, why_not_decide
from scheduler.record import Decided, Recorded, advance, record
from scheduler.service_manager import ALIVE, notify
from scheduler.sweep import Sweeper

logger = EventLog("minutebook.tick")

# Batches start small and grow: the first message leaves soon.
FIRST_BATCH = 125
GROWTH = 3
# After a downtime an action may have a thousand: a batch ends at so many.
MOST_RECORDED = 10_000
UNKNOWN_HOLDER = "a session that the database does not name"
# Not made anew for each of the thousands of actions of a batch.
NOTHING = Recorded()


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
    set_aside: int = 0
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


@dataclass
class Tick:
    """A tick in progress."""

    engine: sa.Engine
    now: datetime
    batch_size: int
    steps: Steps
    report: TickReport
    # Actions with more occurrences than one tick sends, or being changed: left to the next tick.
    left: set[UUID] = field(default_factory=set)
    # Actions locked by a change; claimed once more at the end.
    busy: set[UUID] = field(default_factory=set)
    # What intervals from the end of this batch count from.
    ends: Ends = field(default_factory=dict)
    # What rules of this batch leave out, by small app.
    calendars: Mapping[int, Calendars] = field(default_factory=dict)
    # Plans of this batch with what they leave out, by the identity of the stored plan and the app.
    closed: dict[tuple[int, int], Plan] = field(default_factory=dict)
    decisions: DecidedOnce = field(init=False)

    def __post_init__(self) -> None:
        self.decisions = DecidedOnce(self.now)

    def decide_if_due(self, found: ticks.Found) -> None:
        """Decide what was found, unless a newer release decides in this database."""
        self.report.older_release = why_not_decide(self.engine, *found.release)
        if found.has_due and self.report.older_release is None:
            self.decide_all()
        if found.has_events and self.report.older_release is None:
            self.decide_events()
        if self.report.older_release is not None:
            logger.error(
                "older_release", "this daemon decides nothing: {error}", self.report.older_release
            )

    def decide_all(self) -> None:
        """Decide, record and send until nothing is due; then retry locked actions once.

        What another process keeps locked, or was in a deadlock, is left to the next tick.
        """
        try:
            while self._batch(skip_locked=True):
                pass
            with self.engine.begin() as connection:
                if not cursors.any_due(connection, self.now, self.left):
                    return
            while self._batch(skip_locked=False):
                pass
        except sa.exc.OperationalError as error:
            if not is_locked(error):
                raise
            self.report.locked = self._holder()
            logger.warning(
                "actions_locked",
                "actions stay locked by another process ({holder}): {error}",
                self.report.locked,
                error.orig,
            )

    def _holder(self) -> str:
        """Return the session that has held locks on cursors the longest, where it is known."""
        try:
            with reading(self.engine) as connection:
                return cursors.holder(connection) or UNKNOWN_HOLDER
        except sa.exc.SQLAlchemyError:
            return UNKNOWN_HOLDER

    def decide_events(self) -> None:
        """Decide, record and send occurrences of events."""
        events = EventTick(self.engine, self.now, self._is_outdated, self._take)
        events.decide_all()
        self.report.set_aside += events.set_aside
        self.report.events_error = events.error

    def _take(self, recorded: Recorded) -> None:
        self.report.add(recorded)
        self._send(recorded.messages)

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
        return ticks.clock_went_back(connection, self.now, CLOCK_WAS_WRONG)

    def _batch(self, *, skip_locked: bool) -> int:
        with self.engine.begin() as connection:
            if self._is_outdated(connection):
                return 0
            if not skip_locked:
                wait_briefly(connection)
            rows = cursors.claim_due(
                connection,
                self.now,
                # A waiting batch holds no other lock, except of rows that are no longer due.
                self._next_size() if skip_locked else 1,
                left_out=self.left | self.busy if skip_locked else self.left,
                skip_locked=skip_locked,
            )
            recorded, count = self._decide(connection, rows)
        if not skip_locked:
            self.left |= self.busy
        self.report.decided += count
        self._take(recorded)
        # A tick after a long downtime takes longer than a watchdog waits.
        notify(ALIVE)
        return count

    def _next_size(self) -> int:
        return min(self.batch_size, max(FIRST_BATCH, GROWTH * self.report.decided))

    def _decide(self, connection: sa.Connection, rows: Any) -> tuple[Recorded, int]:
        """Decide and record actions; return what was recorded, and of how many actions.

        The rest waits for the next batch once these have as many occurrences as one records.
        """
        recorded, count, occurrences = NOTHING, 0, 0
        decided: list[Decided] = []
        plans = {row.action_uid: row.plan for row in rows}
        self.ends = ends_for(connection, plans, self.now)
        named = ((row.plan, row.small_app_id) for row in rows)
        self.calendars = calendars_for(connection, named)
        self.closed.clear()
        for row in rows:
            if occurrences >= MOST_RECORDED:
                break
            count += 1
            try:
                before, one = self._decide_one(connection, row)
            except Exception as error:  # one broken action must not stop the tick
                if is_of_no_row(error):
                    raise
                before, one = self._set_aside(connection, row, error), None
            if before is not NOTHING:
                recorded += before
            if one is None:
                continue
            if len(one.decision.due) >= MOST_SENT:
                self.left.add(row.action_uid)
            occurrences += len(one.decision.due) + len(one.decision.missed)
            decided.append(one)
        return recorded + self._record(connection, decided), count

    def _decide_one(
        self, connection: sa.Connection, row: sa.Row[Any]
    ) -> tuple[Recorded, Decided | None]:
        """Return what was recorded before an edit, and the decision; None if a change holds it."""
        if row.deleted_at is not None:
            # An edit by plain SQL scheduled it: a deleted action has no occurrence.
            gone = Decision(row.watermark)
            return NOTHING, Decided(action_ref(row), NOTHING_PLANNED, gone)
        if has_to_be_adopted(row, self.steps):
            if not self._holds(connection, row.action_uid):
                return NOTHING, None
            with connection.begin_nested():
                return adopt_edit(connection, row, self.now, self.steps)
        plan = self._closing(row.plan, row.small_app_id)
        decision = self.decisions.of(plan, row.action_uid, row.watermark, self.ends)
        return NOTHING, Decided(action_ref(row), plan, decision)

    def _closing(self, plan: Plan | Broken, small_app_id: int) -> Plan:
        """Return a plan with its calendars: one for all actions that share it."""
        if not sound(plan).names_calendars:
            return sound(plan)
        key = (id(plan), small_app_id)
        if key not in self.closed:
            calendars = self.calendars.get(small_app_id, {})
            self.closed[key] = sound(plan).with_calendars(calendars)
        return self.closed[key]

    def _holds(self, connection: sa.Connection, uid: UUID) -> bool:
        if cursors.hold_action(connection, uid):
            return True
        self.busy.add(uid)
        return False

    def _record(self, connection: sa.Connection, decided: list[Decided]) -> Recorded:
        """Record a batch; if the database refuses it, record one by one to find the broken row."""
        try:
            with connection.begin_nested():
                recorded = record(connection, decided)
                advance(connection, decided)
            return recorded
        except Exception as error:  # one broken action must not stop the tick
            if is_of_no_row(error):
                raise
            if len(decided) == 1:
                return self._set_aside(connection, decided[0], error)
            return sum((self._record(connection, [one]) for one in decided), NOTHING)

    def _set_aside(
        self, connection: sa.Connection, broken: sa.Row[Any] | Decided, error: Exception
    ) -> Recorded:
        """Quarantine an action; return what was recorded before a broken edit."""
        uid = broken.action.uid if isinstance(broken, Decided) else broken.action_uid
        if not self._holds(connection, uid):
            return NOTHING
        logger.error(
            "action_quarantined", "action {action} is quarantined: {reason}", uid, reason_of(error)
        )
        self.report.set_aside += 1
        if isinstance(broken, Decided):
            actions.set_aside(connection, uid, reason_of(error))
            return NOTHING
        # The edit may be newer than this tick's `now`: no later tick decides by the old plan.
        now = max(self.now, read_clock(connection))
        return set_aside(connection, broken, error, now)

    def _send(self, messages: Sequence[Message]) -> None:
        # A failed flush ends sending to that broker, not recording.
        if not messages:
            return
        began = monotonic()
        sent = send_reserved(self.engine, messages, self.report.broker_error)
        self.report.publish_s += monotonic() - began
        self.report.sent += sent.count
        self.report.broker_error = sent.error
        error = sent.application_error or self.report.application_broker_error
        self.report.application_broker_error = error


def tick(
    engine: sa.Engine,
    now: datetime | None,
    sweeper: Sweeper,
    steps: Steps,
    batch_size: int = 1000,
    longest_gap: timedelta = timedelta(minutes=2),
) -> TickReport:
    """Decide everything due up to `now` (aware UTC), send it, repair, and return what was done.

    If `now` is None, the database's clock decides. Edits by plain SQL are read with `steps`. After
    a gap of more than `longest_gap`, the report counts what was due meanwhile. Raises SQLAlchemy's
    errors if the database is unavailable; committed work stays.
    """
    started = monotonic()
    found, set_back_s = look(engine, now, sweeper)
    report = TickReport(found.now, clock_set_back_s=set_back_s)
    was_down = downtime.note(engine, found, longest_gap)
    if report.clock_set_back_s:
        sweeper.distrust()
    one = Tick(engine, found.now, batch_size, steps, report)
    _look_at_broker(engine, found, report)
    one.decide_if_due(found)
    if monotonic() - started > sweeper.lease.total_seconds() / 4:
        # The database may have blocked meanwhile, and with it the workers' heartbeats.
        sweeper.distrust()
    _sweep(engine, found.repairs, report, sweeper)
    if was_down:
        report.downtime = downtime.report(engine)
    if report.missed:
        downtime.settle_notice(engine)
    report.duration_ms = round((monotonic() - started) * 1000, 3)
    return report


def _look_at_broker(engine: sa.Engine, found: ticks.Found, report: TickReport) -> None:
    """Release messages that the broker lost; if it is unavailable, this tick sends nothing."""
    try:
        report.lost_messages = lost_messages.look(engine, found.queued, found.listened)
    except BrokerUnavailable as error:
        report.broker_error = str(error)


def _sweep(engine: sa.Engine, found: ticks.Repairs, report: TickReport, sweeper: Sweeper) -> None:
    """Repair what the tick found, and what it made itself."""
    found = found._replace(
        sendable=found.sendable or report.lost_messages > 0,
        # What was recorded and not sent may have ended, with a notice.
        notices=found.notices or report.recorded > report.sent,
    )
    send, overtook = report.broker_error is None, report.overtaken > 0
    swept = sweeper.sweep(engine, found, send=send, overtook=overtook)
    report.sent += swept.sent
    report.lost, report.released = swept.lost, swept.released
    report.notices, report.overdue = swept.notices, swept.overdue
    report.broker_error = report.broker_error or swept.error
    report.application_broker_error = report.application_broker_error or swept.application_error
