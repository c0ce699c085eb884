"""Repair what the tick finds broken: unsent and untaken operations, dead leases, stranded waits."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import sqlalchemy as sa

from broker.sending import Sent
from models.operation import OperationState
from models.store.notices import overdue
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import handing, recovery
from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY
from runtime.sections import AlertSettings
from scheduler.broker_watch import BrokerWatch
from scheduler.dispatch import dispatch_backfills, dispatch_notices, dispatch_ready

logger = logging.getLogger("minutehand.sweep")

T = TypeVar("T")

BATCH = 500


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did."""

    sent: int = 0
    lost: int = 0
    released: int = 0
    notices: int = 0
    overdue: int = 0
    error: str | None = None


class Sweeper:
    """A sweep that takes back no lease that could be healthy.

    After its own start, a database error or a pause in its own loop, the workers may have been
    as deaf as we were: one whole lease passes before a silent one counts as lost.
    """

    def __init__(self, lease: timedelta, alerts: AlertSettings = NO_ALERTS) -> None:
        self.lease = lease
        self.alerts = alerts
        self.overdue = alerts.overdue
        self.broker = BrokerWatch()
        self._trusted_from = 0.0
        self.distrust()

    def distrust(self) -> None:
        """Take back no lease within one lease from now."""
        self._trusted_from = monotonic() + self.lease.total_seconds()

    def sweep(self, engine: sa.Engine, *, send: bool, overtook: bool = False) -> SweepReport:
        """Take back lost operations, release stranded ones, then send what may be sent.

        Notices come last, when those of what is overdue are among them. `overtook`: newer
        operations took the place of unstarted ones.
        """
        count = 0
        if monotonic() >= self._trusted_from:
            count = _isolated(lambda: self._take_back(engine), 0)
        released = _isolated(lambda: _release_stranded(engine), 0)
        _isolated(lambda: self._decide_doubtful(engine), None)
        sent = dispatch_ready(engine) if send else Sent(0)
        late = _isolated(lambda: self._alert_overdue(engine, overtook), 0)
        told, error = Sent(0), sent.error
        if send and error is None:
            told = dispatch_notices(engine)
            error = told.error or dispatch_backfills(engine).error
        return SweepReport(sent.count, count, released, told.count, late, error=error)

    def _take_back(self, engine: sa.Engine) -> int:
        count = 0
        while True:
            with engine.begin() as connection:
                taken = recovery.take_back_lost(connection, self.lease, BATCH, self.alerts)
            for operation, state in taken:
                level = logging.ERROR if state == OperationState.FAILED else logging.WARNING
                logger.log(level, "operation %s lost its worker: now %s", operation, state)
            count += len(taken)
            if len(taken) < BATCH:
                return count

    def _decide_doubtful(self, engine: sa.Engine) -> None:
        """Decide what was being sent to the user's own application when its sender fell silent."""
        while True:
            with engine.begin() as connection:
                decided = handing.decide_doubtful(connection, BATCH, self.alerts)
            for operation, state in decided:
                level = logging.ERROR if state == OperationState.FAILED else logging.WARNING
                logger.log(level, "operation %s was left in doubt: now %s", operation, state)
            if len(decided) < BATCH:
                return

    def _alert_overdue(self, engine: sa.Engine, overtook: bool) -> int:
        with engine.begin() as connection:
            alerted = overdue.alert(connection, self.alerts, BATCH, overtook=overtook)
        for name, reason in alerted:
            logger.warning("action %r is overdue: %s", name, reason)
        return len(alerted)


def _isolated(part: Callable[[], T], nothing: T) -> T:
    """Return what a part of the sweep did; one that fails keeps no other part from its work."""
    try:
        return part()
    except DATABASE_AWAY:
        raise
    except Exception:  # a row that nobody foresaw
        logger.exception("a part of this sweep failed; the next one tries it again")
        return nothing


def _release_stranded(engine: sa.Engine) -> int:
    with engine.begin() as connection:
        return recovery.release_stranded(connection)
