"""Scheduled and backfilled operations that wait for each other all end, without a deadlock."""

from datetime import UTC, datetime
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState
from models.store.operations import put_back
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from tests.factories import make_action, make_operation, rows_of
from tests.ticks import MINUTE
from tests.transactions import act, claim_as, finish

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
SCHEDULED, BACKFILLED = "Scheduled action", "Backfill 1 by ann"


def test_who_waits_for_a_released_one_of_the_other_kind_closes_no_circle(
    engine: sa.Engine,
) -> None:
    """Once a backfilled one waited for a scheduled one that waited for an older backfilled one."""
    action = make_action(engine, policy={"overlap": "queue", "max_waiting": 50})
    running: list[UUID] = []

    def at(minute: int, triggerer: str) -> UUID:
        return make_operation(engine, action, NOON + minute * MINUTE, triggerer)

    def start(*ids: UUID) -> None:
        running.extend(id for id in ids if isinstance(claim_as(engine, id, 1, "tests"), Claim))

    def finish_all() -> None:
        while running:
            finish(engine, running.pop(), Outcome(OperationState.SUCCESS))

    first, early, last = at(1, BACKFILLED), at(9, SCHEDULED), at(5, BACKFILLED)
    start(first, early, last)
    finish_all()
    second = at(3, BACKFILLED)
    start(second, at(2, BACKFILLED), late := at(10, SCHEDULED))
    finish_all()
    start(early, late)
    finish_all()
    start(last)

    for _ in range(20):
        free = [
            row["id"] for row in rows_of(engine, action)
            if row["state"] in {"pending", "queued"} and row["waiting_for"] is None
        ]  # fmt: skip
        start(*free[:1])
        finish_all()
        act(engine, put_back.release_stranded)

    assert {row["state"] for row in rows_of(engine, action)} == {"success"}
