"""Operations get the backfill that their triggerers name."""

from uuid import UUID

import sqlalchemy as sa
from alembic import command

from models.store.schema import _config, migrate
from models.tables import operations
from tests.migration.test_causes import INSERT
from tests.migration.test_time_limits import AT, OURS, store

LAST = "0021_pre_staging_begun"
ID = "3f0c9e2a-0000-4000-8000-00000000000a"
TRIGGERERS = ("Backfill 3f0c9e2a by ann", "Backfill 3f0c9e2a by ben", "Retry by ann", "x")


def record(connection: sa.Connection, number: int, triggerer: str) -> None:
    """Record an operation as the last release did."""
    id = f"00000000-0000-4000-9000-{number:012}"
    values = {"id": id, "triggerer": triggerer, "event_at": None, "at": AT}
    connection.execute(INSERT, values)
    cause = "backfill" if triggerer.startswith("Backfill") else "schedule"
    changed = sa.text("UPDATE operations SET cause = :cause WHERE id = :id")
    connection.execute(changed, {"cause": cause, "id": id})


def test_each_stored_operation_has_the_backfill_that_its_triggerer_names(
    empty: sa.Engine,
) -> None:
    with empty.begin() as connection:
        command.upgrade(_config(connection), LAST)
        store(connection, 1, "{}", OURS)
        filled = sa.text(
            "INSERT INTO backfills (id, small_app_id, action_uid, since, until, mode, cursor,"
            " state, actor, not_before, requested_at)"
            " VALUES (:id, 1, '00000000-0000-4000-8000-000000000001', :at, :at, 'all', :at,"
            " 'done', 'ann', :at, :at)"
        )
        connection.execute(filled, {"id": ID, "at": AT})
        for number, triggerer in enumerate(TRIGGERERS):
            record(connection, number, triggerer)

    migrate(empty)

    with empty.connect() as connection:
        rows = connection.execute(sa.select(operations.c.triggerer, operations.c.backfill_id)).all()
    assert dict(map(tuple, rows)) == dict.fromkeys(TRIGGERERS) | {TRIGGERERS[0]: UUID(ID)}


def test_what_the_last_release_records_meanwhile_has_none(empty: sa.Engine) -> None:
    migrate(empty)
    with empty.begin() as connection:
        store(connection, 1, "{}", OURS)
        record(connection, 1, TRIGGERERS[0])

        assert connection.execute(sa.select(operations.c.backfill_id)).scalars().all() == [None]
