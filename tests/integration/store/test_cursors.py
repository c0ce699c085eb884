"""What a tick reads of the actions that are due."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from models.store.actions import quarantined
from models.store.notices.alerting import NO_ALERTS
from models.tables import action_cursor
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import make_many
from tests.statements import executed

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_a_tick_over_many_actions_reads_no_document(engine: sa.Engine) -> None:
    uids = make_many(engine, 50)
    with engine.begin() as connection:
        quarantined(connection, uids[0], "no reason")
        connection.execute(sa.update(action_cursor).values(next_occurrence_at=NOON))

    with executed(engine) as statements:
        report = tick(engine, NOON, Sweeper(MINUTE, NO_ALERTS))

    assert report.decided == 50
    assert [one for one in statements if "document" in one] == []
