"""The backlog of an outage runs whole and in order, beside retention."""

from datetime import timedelta
from uuid import UUID

import sqlalchemy as sa

from models.fingerprint import operation_id
from models.operation import Cause, CausedBy, OperationState
from models.sql import database_now
from models.store import operations
from models.tables import operations as operations_table
from runtime.database import reading
from scheduler.changes.change import Changed
from scheduler.record import ActionRef, operation_row
from tests.acceptance.installation import MINUTE, Installation
from tests.acceptance.processes import until
from tests.factories import DEFAULT_APP, make_operation

BACKLOG = 400
IN_ORDER = {"overlap": "queue", "catch_up": "all", "look_back": "P2D"}


def record_backlog(installation: Installation, action: Changed) -> list[UUID]:
    """Record one operation for each minute before now, as a tick does after an outage."""
    now = installation.now()
    subject = ActionRef(action.uid, DEFAULT_APP.id, action.name, action.revision)
    by = CausedBy(Cause.SCHEDULE, f'Scheduled action "{action.name}"')
    instants = [now - number * MINUTE for number in range(BACKLOG, 0, -1)]
    ids = [operation_id(action.uid, at) for at in instants]
    rows = [
        operation_row(subject, action.plan, id, at, by)
        for id, at in zip(ids, instants, strict=True)
    ]
    with installation.engine.begin() as connection:
        operations.record(connection, rows)
        due = sa.update(operations_table).values(not_before=database_now(-1.0))
        connection.execute(due)
    return ids


def in_the_order_of_their_starts(installation: Installation, action: Changed) -> list[UUID]:
    query = (
        sa.select(operations_table.c.id)
        .where(operations_table.c.action_uid == action.uid)
        .where(operations_table.c.state == OperationState.SUCCESS)
        .order_by(operations_table.c.first_started_at, operations_table.c.finished_at)
    )
    with reading(installation.engine) as connection:
        return list(connection.execute(query).scalars())


def test_the_backlog_of_an_outage_runs_whole_and_in_order_beside_retention(
    installation: Installation,
) -> None:
    action = installation.action("many", policy=IN_ORDER)
    prunes = installation.action("prunes", operations={"maintenance": True})
    ids = record_backlog(installation, action)
    long_ago = [
        make_operation(installation.engine, prunes, installation.now() - timedelta(minutes=number))
        for number in range(3)
    ]
    installation.worker("quick,heavy,default", 2)
    installation.daemon()

    until(
        lambda: len(in_the_order_of_their_starts(installation, action)) == BACKLOG,
        lambda: f"{len(in_the_order_of_their_starts(installation, action))} have run",
        120,
    )

    assert in_the_order_of_their_starts(installation, action) == ids
    assert {installation.row(id)["state"] for id in long_ago} <= {"success", "skipped", "pending"}
    assert {row["attempt"] for row in installation.rows(action.uid)} == {1}
