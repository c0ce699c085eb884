"""Decide what the clock makes due, a batch of actions at a time: claim, decide, record, send."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.action.plan import Plan, UnreadablePlan, readable
from models.parsing import Calendars
from models.store.actions import cursors
from models.store.tenants.closing import calendars_for
from runtime.database import is_locked, is_of_no_row, reading, wait_briefly
from runtime.logs.events import EventLog
from scheduler.changes.revisions import action_ref
from scheduler.decision import MOST_SENT
from scheduler.from_end import DecisionCache, Ends, ends_for
from scheduler.quarantine import Quarantine
from scheduler.record import Decided, Recorded, advance, record
from scheduler.systemd_notify import ALIVE, notify

logger = EventLog("minutebook.tick")

# Batches start small and grow: the first message leaves soon.
FIRST_BATCH = 125
GROWTH = 3
# After a downtime an action may have a thousand: a batch ends at so many.
MOST_RECORDED = 10_000
UNKNOWN_HOLDER = "a session that the database does not name"


@dataclass
class Batches:
    """Decides all actions that are due at `now`; `take` gets what each batch recorded.

    Once `is_outdated`, `now` was wrong, and nothing more is recorded.
    """

    engine: sa.Engine
    now: datetime
    batch_size: int
    is_outdated: Callable[[sa.Connection], bool]
    take: Callable[[Recorded], None]
    decided: int = 0
    # Who kept rows locked that this tick waited for in vain.
    locked: str | None = None
    # Those with more occurrences than one tick sends are left to the next one as well.
    quarantine: Quarantine = field(default_factory=Quarantine)
    # What intervals from the end of this batch count from.
    ends: Ends = field(default_factory=dict)
    # What rules of this batch leave out, by small app.
    calendars: Mapping[int, Calendars] = field(default_factory=dict)
    # Plans of this batch with what they leave out, by the identity of the stored plan and the app.
    closed: dict[tuple[int, int], Plan] = field(default_factory=dict)
    decisions: DecisionCache = field(init=False)
    # Whether the last batch passed over actions that are due.
    _passed_over: bool = False

    def __post_init__(self) -> None:
        self.decisions = DecisionCache(self.now)

    def decide_all(self) -> None:
        """Decide, record and send until nothing is due; then retry locked actions once.

        What another process keeps locked, or was in a deadlock, is left to the next tick.
        """
        try:
            while self._batch(skip_locked=True):
                pass
            while self._passed_over and self._batch(skip_locked=False):
                pass
        except sa.exc.OperationalError as error:
            if not is_locked(error):
                raise
            self.locked = self._holder()
            logger.warning(
                "actions_locked",
                "actions stay locked by another process ({holder}): {error}",
                self.locked,
                error.orig,
            )

    def _holder(self) -> str:
        """Return the session that has held locks on cursors the longest, where it is known."""
        try:
            with reading(self.engine) as connection:
                return cursors.holder(connection) or UNKNOWN_HOLDER
        except sa.exc.SQLAlchemyError:
            return UNKNOWN_HOLDER

    def _batch(self, *, skip_locked: bool) -> bool:
        """Decide, record and send one batch; return whether there may be another one."""
        # A waiting batch holds no other lock, except of rows that are no longer due.
        limit = self._next_size() if skip_locked else 1
        with self.engine.begin() as connection:
            if self.is_outdated(connection):
                return False
            if not skip_locked:
                wait_briefly(connection)
            due = (connection, self.now, limit)
            rows = cursors.claim_due(*due, left_out=self.quarantine.left, skip_locked=skip_locked)
            recorded, count = self._decide(connection, rows)
            is_last = count < limit and count == len(rows)
            if is_last:
                self._passed_over = cursors.any_due(connection, self.now, self.quarantine.left)
        self.decided += count
        self.take(recorded)
        # A tick after a long downtime takes longer than a watchdog waits.
        notify(ALIVE)
        return not is_last

    def _next_size(self) -> int:
        return min(self.batch_size, max(FIRST_BATCH, GROWTH * self.decided))

    def _decide(self, connection: sa.Connection, rows: Any) -> tuple[Recorded, int]:
        """Decide and record actions; return what was recorded, and of how many actions.

        The rest waits for the next batch once these have as many occurrences as one records.
        """
        count, occurrences = 0, 0
        decided: list[Decided] = []
        plans = ((row.action_uid, row.plan) for row in rows)
        self.ends = ends_for(connection, plans, self.now)
        named = ((row.plan, row.small_app_id) for row in rows)
        self.calendars = calendars_for(connection, named)
        self.closed.clear()
        for row in rows:
            if occurrences >= MOST_RECORDED:
                break
            count += 1
            try:
                one = self._decide_one(row)
            except Exception as error:  # one broken action must not stop the tick
                if is_of_no_row(error):
                    raise
                self.quarantine.add(connection, row.action_uid, error)
                continue
            if len(one.decision.due) >= MOST_SENT:
                self.quarantine.left.add(row.action_uid)
            occurrences += len(one.decision.due) + len(one.decision.missed)
            decided.append(one)
        return self.quarantine.recorded(connection, decided, _record), count

    def _decide_one(self, row: sa.Row[Any]) -> Decided:
        """Return the decision about an action; raises ValueError for a broken plan."""
        plan = self._closing(row.plan, row.small_app_id)
        decision = self.decisions.of(plan, row.action_uid, row.watermark, self.ends)
        return Decided(action_ref(row), plan, decision)

    def _closing(self, plan: Plan | UnreadablePlan, small_app_id: int) -> Plan:
        """Return a plan with its calendars: one for all actions that share it."""
        plan = readable(plan)
        if not plan.calendars:
            return plan
        key = (id(plan), small_app_id)
        if key not in self.closed:
            self.closed[key] = plan.with_calendars(self.calendars.get(small_app_id, {}))
        return self.closed[key]


def _record(connection: sa.Connection, decided: Sequence[Decided]) -> Recorded:
    recorded = record(connection, decided)
    advance(connection, decided)
    return recorded
