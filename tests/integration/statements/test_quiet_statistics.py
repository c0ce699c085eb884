"""What is given is found row by row, also by statistics of a moment when nothing was unstarted.

A database is analysed at any time, most likely when it is quiet. At the next full minute it would
compare each unstarted operation with each one given.
"""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from benchmarks.filling import analyze
from models.action.plan import Plan
from models.fingerprint import operation_id
from models.store import operations
from models.store.operations import outbox, unstarted
from models.store.operations.outbox import Message
from scheduler.record import ActionRef, operation_row
from tests.factories import caused_by, make_many
from tests.integration.statements.plans import Statements

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
STORED, GIVEN = 5_000, 100
PLAN = Plan(active=True, triggers=(), is_heavy=False, queue="quick")


def test_unstarted_operations_are_marked_and_overtaken_by_their_keys(engine: sa.Engine) -> None:
    uids = make_many(engine, STORED)
    analyze(engine)
    rows = [
        operation_row(
            ActionRef(uid, 1, "one", 1), PLAN, operation_id(uid, NOON), NOON, caused_by("tests")
        )
        for uid in uids
    ]
    statements = Statements(engine, is_repeated=False)

    with engine.begin() as connection:
        operations.record(connection, rows)
    with statements.captured(), engine.begin() as connection:
        messages = [Message(row["id"], 1, row["task"], row["queue"]) for row in rows[:GIVEN]]
        outbox.mark_sent(connection, messages)
        newest = [(uid, NOON + timedelta(minutes=1)) for uid in uids[:GIVEN]]
        overtaken = unstarted.overtake(connection, newest)

    found = [read for reads in statements.reads().values() for read in reads]
    assert overtaken == GIVEN
    assert [read for read in found if read.table == "operations" and read.is_whole] == []
    assert {"operations_unstarted"} <= statements.indexes()
