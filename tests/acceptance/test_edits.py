"""Actions are changed at the instant of a tick: no minute is eaten, none runs from the past."""

import json
from datetime import timedelta

import pytest
import sqlalchemy as sa

from models.tables import actions, revisions
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.factories import make_document


@pytest.mark.parametrize("store", ["postgresql"])
def test_an_edit_by_sql_of_an_action_that_a_tick_takes_over_is_no_deadlock(
    installation: Installation,
) -> None:
    """The edit holds the action and wants its cursor, the tick has it the other way round."""
    action = installation.action(operations={"maintenance": True})
    row = sa.update(actions).where(actions.c.uid == action.uid)
    with installation.engine.begin() as connection:
        connection.execute(row.values(active=False))

    document = json.dumps(make_document(name=action.name, description="the second edit"))
    with installation.engine.begin() as editor:
        editor.execute(row.values(owner="somebody"))
        daemon = installation.daemon()
        until(lambda: has_waited(installation) or bool(installation.ticks()), "the tick meets it")
        editor.execute(row.values(document=document, active=True))

    daemon.said("tick ", times=2)
    with installation.engine.connect() as connection:
        newest = sa.select(revisions.c.author, revisions.c.document).order_by(
            revisions.c.number.desc()
        )
        by, stored = connection.execute(newest.limit(1)).one()
    assert (by, json.loads(stored)["description"]) == ("plain SQL", "the second edit")
    assert "database unavailable" not in daemon.text()


def has_waited(installation: Installation) -> bool:
    """Whether a session has waited for a lock longer than PostgreSQL takes to see a deadlock."""
    waits = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND statement_timestamp() - query_start > :long"
    )
    with installation.engine.connect() as connection:
        return bool(connection.execute(waits, {"long": timedelta(seconds=1.5)}).scalar_one())
