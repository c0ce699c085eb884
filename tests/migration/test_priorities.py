"""What waits keeps its order over the migration, and what the last release records goes first."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import command

from models.store.schema import _config, migrate
from models.tables import operations
from tests.migration.test_causes import INSERT
from tests.migration.test_time_limits import AT, OURS, store

LAST = "0015_pre_apps"


def record(connection: sa.Connection, number: int, state: str) -> None:
    id = f"00000000-0000-4000-9000-{number:012}"
    values = {"id": id, "triggerer": "x", "event_at": None, "at": AT}
    connection.execute(INSERT, values)
    changed = sa.text("UPDATE operations SET state = :state WHERE id = :id")
    connection.execute(changed, {"state": state, "id": id})


def test_what_waits_is_ranked_by_its_age(empty: sa.Engine) -> None:
    with empty.begin() as connection:
        command.upgrade(_config(connection), LAST)
        store(connection, 1, "{}", OURS)
        record(connection, 1, "pending")

    migrate(empty)

    with empty.connect() as connection:
        row = connection.execute(sa.select(operations)).one()
    assert (row.priority, row.ranked_at) == (0, row.recorded_at)


def test_what_the_last_release_records_meanwhile_goes_first(empty: sa.Engine) -> None:
    migrate(empty)
    with empty.begin() as connection:
        store(connection, 1, "{}", OURS)
        record(connection, 1, "pending")

        row = connection.execute(sa.select(operations)).one()
    assert (row.priority, row.ranked_at) == (0, datetime(1970, 1, 1, tzinfo=UTC))
