"""Ticks of a daemon that owes nobody an alert, and spans of time."""

from datetime import datetime, timedelta

import sqlalchemy as sa

from models.store.notices.alerting import NO_ALERTS
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tests.virtual_clock import VirtualClock

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=number) for number in (1, 60, 3600, 86_400))
LEASE = timedelta(seconds=45)


def run_tick(engine: sa.Engine, now: datetime | None = None, batch_size: int = 1000) -> TickReport:
    """Tick at an instant, by default at that of the database's clock."""
    return tick(engine, now, Sweeper(LEASE, NO_ALERTS), batch_size)


def tick_at(clock: VirtualClock, now: datetime) -> TickReport:
    """Set the database's clock, and tick by it."""
    clock.set(now)
    return run_tick(clock.engine)
