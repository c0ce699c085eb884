"""A worker that is busy gets the operation of the highest priority next."""

from uuid import UUID

from models.operation import OperationState
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.acceptance.test_fair_turns import count_in, record, started

QUEUED = 200


def test_a_saturated_worker_gets_the_highest_next(installation: Installation) -> None:
    # Each takes a second, so that the queue outlasts the test.
    second = {"trace_one": {"progress": 3}}
    bulk, urgent, usual = (
        installation.action(name, operations=second, policy={"overlap": "allow", **priority})
        for name, priority in (
            ("bulk", {"priority": -20}),
            ("urgent", {"priority": 50}),
            ("usual", {}),
        )
    )
    of_bulk = record(installation, bulk, count=QUEUED)
    installation.worker("quick", 1)
    installation.daemon()
    until(lambda: count_in(installation, bulk, OperationState.RUNNING) == 1, "the worker is busy")

    above = record(installation, usual, urgent, count=2)
    until(lambda: all_ended(installation, above), "what is above the bulk has run", 60)

    in_order = sorted(
        (row for one in (bulk, usual, urgent) for row in started(installation, one)),
        key=lambda row: row["first_started_at"],
    )
    ids = [row["id"] for row in in_order]
    of_usual, of_urgent = above[:2], above[2:]
    begun = ids.index(of_urgent[0])
    # What the daemon sees at its next tick starts when the running one has ended.
    assert ids[:begun] == of_bulk[:begun]
    assert ids[begun : begun + 4] == of_urgent + of_usual
    until(lambda: len(started(installation, bulk)) > begun, "the bulk goes on")
    assert count_in(installation, bulk, OperationState.PENDING) > 0


def all_ended(installation: Installation, ids: list[UUID]) -> bool:
    states = [row["state"] for row in installation.rows() if row["id"] in ids]
    return states == [OperationState.SUCCESS] * len(ids)
