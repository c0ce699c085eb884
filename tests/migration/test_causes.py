"""Operations of the last release get the cause that their triggerer states."""

import sqlalchemy as sa
from alembic import command

from models.operation import Cause
from models.store.schema import _config, migrate
from tests.migration.test_time_limits import AT, LAST, OURS, store

TRIGGERERS = {
    'Scheduled action "nightly"': Cause.SCHEDULE,
    "Manual run by ann": Cause.MANUAL,
    "Rerun by ann": Cause.RERUN,
    "Retry by ann": Cause.RETRY,
    "Backfill 1a2b3c4d by ann": Cause.BACKFILL,
}
INSERT = sa.text(
    "INSERT INTO operations (id, small_app_id, action_uid, revision, occurrence_at, state,"
    " triggerer, queue, task, event_at, recorded_at, not_before)"
    " VALUES (:id, 1, '00000000-0000-4000-8000-000000000001', 1, :at, 'success', :triggerer,"
    " 'quick', 'x', :event_at, :at, :at)"
)


def test_each_stored_operation_has_its_cause(empty: sa.Engine) -> None:
    with empty.begin() as connection:
        command.upgrade(_config(connection), LAST)
        store(connection, 1, "{}", OURS)
        rows = [*((text, None) for text in TRIGGERERS), ('Scheduled action "nightly"', AT)]
        for number, (triggerer, event_at) in enumerate(rows):
            id = f"00000000-0000-4000-9000-{number:012}"
            values = {"id": id, "triggerer": triggerer, "event_at": event_at, "at": AT}
            connection.execute(INSERT, values)

    migrate(empty)

    with empty.connect() as connection:
        found = connection.execute(sa.text("SELECT cause FROM operations ORDER BY id")).scalars()
        assert list(found) == [*TRIGGERERS.values(), Cause.EVENT]


def test_what_the_last_release_records_meanwhile_counts_as_scheduled(empty: sa.Engine) -> None:
    migrate(empty)
    with empty.begin() as connection:
        store(connection, 1, "{}", OURS)
        values = {"id": "00000000-0000-4000-9000-000000000000", "triggerer": "x", "event_at": None}
        connection.execute(INSERT, {**values, "at": AT})

        assert connection.execute(sa.text("SELECT cause FROM operations")).scalar() == "schedule"
