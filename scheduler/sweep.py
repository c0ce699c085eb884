"""Repair what the tick finds broken: unsent and untaken operations, dead leases, stranded waits."""

import logging
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from models.operation import OperationState
from models.store import lost
from runtime.clock import monotonic
from scheduler.dispatch import dispatch_backfills, dispatch_ready

logger = logging.getLogger("minutehand.sweep")

BATCH = 500


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did."""

    sent: int = 0
    lost: int = 0
    released: int = 0
    error: str | None = None


class Sweeper:
    """A sweep that takes back no lease that could be healthy.

    After its own start, a database error or a pause in its own loop, the workers may have been
    as deaf as we were: one whole lease passes before a silent one counts as lost.
    """

    def __init__(self, lease: timedelta) -> None:
        self.lease = lease
        self._trusted_from = 0.0
        self.distrust()

    def distrust(self) -> None:
        """Take back no lease within one lease from now."""
        self._trusted_from = monotonic() + self.lease.total_seconds()

    def sweep(self, engine: sa.Engine, *, send: bool) -> SweepReport:
        """Take back lost operations, release stranded ones, then send what may be sent."""
        count = self._take_back(engine) if monotonic() >= self._trusted_from else 0
        with engine.begin() as connection:
            released = lost.release_stranded(connection)
        if not send:
            return SweepReport(0, count, released)
        sent = dispatch_ready(engine)
        error = sent.error or dispatch_backfills(engine).error
        return SweepReport(sent.count, count, released, error)

    def _take_back(self, engine: sa.Engine) -> int:
        count = 0
        while True:
            with engine.begin() as connection:
                taken = lost.take_back_lost(connection, self.lease, BATCH)
            for operation, state in taken:
                level = logging.ERROR if state == OperationState.FAILED else logging.WARNING
                logger.log(level, "operation %s lost its worker: now %s", operation, state)
            count += len(taken)
            if len(taken) < BATCH:
                return count
