"""The loop on real databases, beside another daemon."""

from datetime import timedelta

import sqlalchemy as sa

from models.sql import read_clock
from models.store import facts
from runtime.config import Settings
from runtime.database import make_engine, reading
from scheduler.loop import Daemon
from tests.factories import STEPS

HOUR = timedelta(hours=1)


def test_a_daemon_that_was_frozen_at_its_clock_does_not_take_it_for_set_back(
    engine: sa.Engine, settings: Settings
) -> None:
    """Its first transaction is followed by an hour in which another daemon ticks."""
    other = make_engine(settings)
    with reading(other) as connection:
        in_an_hour = (read_clock(connection) + HOUR).isoformat()

    def tick_elsewhere(*_: object) -> None:
        with other.begin() as connection:
            facts.set_fact(connection, facts.LAST_NOW, in_an_hour)

    sa.event.listen(engine, "checkin", tick_elsewhere, once=True)
    report = Daemon(engine, settings, steps=STEPS).tick_once()
    other.dispose()

    assert report.clock_set_back_s == 0
