"""A backfill by real processes: from the command line to the steps, and through a kill -9."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import psutil
import sqlalchemy as sa

from models.fingerprint import operation_id
from models.sql import database_now
from models.store.operations import backfills
from models.store.scope import WHOLE_INSTALLATION
from models.tables import action_cursor
from models.tables import backfills as backfills_table
from runtime.database import reading
from scheduler.changes import Change
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.ticks import MINUTE

EVERY_MINUTE = {"cron_rule": "* * * * *", "timezone": "UTC"}


@contextmanager
def held_up(installation: Installation, action: Change) -> Iterator[None]:
    """Hold up who records for the action: its cursor is locked (SQLite: all writing is)."""
    with installation.engine.begin() as connection:
        if installation.store == "postgresql":
            # However long a worker takes to come.
            connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        own = sa.select(action_cursor).where(action_cursor.c.action_uid == action.uid)
        connection.execute(own.with_for_update())
        yield


def is_taken(installation: Installation) -> bool:
    """Whether a worker has the message and, where that can be seen, stands in its transaction."""
    with installation.broker.client() as client:
        if client.llen("minutebook.default"):
            return False
    if installation.store == "sqlite":
        return True
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with reading(installation.engine) as connection:
        return bool(connection.execute(waiting).scalar_one())


def row_of(installation: Installation, id: UUID) -> dict[str, object]:
    with reading(installation.engine) as connection:
        return backfills.get(connection, id, WHOLE_INSTALLATION)


def test_a_worker_that_is_killed_while_it_records_leaves_all_to_the_next_one(
    installation: Installation,
) -> None:
    last = installation.now().replace(second=0, microsecond=0) - timedelta(hours=1)
    first = last - 999 * MINUTE
    # Nothing of it is due by the clock while the test goes on.
    policy = {"overlap": "allow", "ends_at": (last + MINUTE).isoformat()}
    action = installation.action(when=EVERY_MINUTE, policy=policy)
    ends = ("--from", first.isoformat(), "--to", last.isoformat())
    id = UUID(installation.cli("backfill", "traced", *ends)["id"])
    until(lambda: bool(installation.kept_messages("minutebook.default")), "its message is sent")
    with held_up(installation, action):
        worker = installation.worker("default")
        until(lambda: is_taken(installation), "a worker stands in its transaction")
        for pid in worker.children():
            psutil.Process(pid).kill()
        worker.kill()
    assert row_of(installation, id)["state"] == "active"
    assert installation.rows(action.uid) == []

    installation.worker("default", is_awaited=True)
    with installation.engine.begin() as connection:
        own = sa.update(backfills_table).where(backfills_table.c.id == id)
        connection.execute(own.values(not_before=database_now(-1.0)))
    installation.tick()
    until(lambda: row_of(installation, id)["state"] == "done", "the backfill is done")

    assert {row["id"] for row in installation.rows(action.uid)} == {
        operation_id(action.uid, first + n * MINUTE) for n in range(1_000)
    }
