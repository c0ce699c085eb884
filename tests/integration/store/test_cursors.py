"""What a tick reads of the actions that are due."""

from datetime import UTC, datetime

import sqlalchemy as sa

from models.store.actions import quarantined
from models.tables import action_cursor
from tests.factories import make_many
from tests.statements import executed
from tests.ticks import run_tick

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_a_tick_over_many_actions_reads_no_document(engine: sa.Engine) -> None:
    uids = make_many(engine, 50)
    with engine.begin() as connection:
        quarantined(connection, uids[0], "no reason")
        connection.execute(sa.update(action_cursor).values(next_occurrence_at=NOON))

    with executed(engine) as statements:
        report = run_tick(engine, NOON)

    assert report.decided == 50
    assert [one for one in statements if "document" in one] == []
