"""Scheduled, retried and backfilled operations all end, in any order, without a deadlock."""

from datetime import UTC, datetime
from random import Random
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.operation import ENDED, OperationState
from models.store.operations import put_back, refusals
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from models.tables import operations as operations_table
from scheduler.changes import Change
from tests.factories import make_action, make_operation, row_of
from tests.ticks import MINUTE
from tests.transactions import act, claim_as, fetched, finish

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
TRIGGERERS = ("Scheduled action", "Manual run by ann", "Backfill 1 by ann", "Retry by ann")
COUNT = 14


class Play:
    """Messages that are delivered, repeated and lost in any order, and operations that end so."""

    def __init__(self, engine: sa.Engine, action: Change, seed: int) -> None:
        self.engine, self.action, self.random = engine, action, Random(seed)
        self.ids: list[UUID] = []
        self.running: dict[UUID, int] = {}

    def record(self) -> None:
        """Record one more operation, of any kind, at any minute that is free."""
        self.at(self.random.randrange(1000), self.random.choice(TRIGGERERS))

    def at(self, minute: int, triggerer: str) -> UUID:
        """Record an operation of a minute; return its id."""
        occurrence = NOON + minute * MINUTE
        self.ids.append(make_operation(self.engine, self.action, occurrence, triggerer))
        return self.ids[-1]

    def start(self, *ids: UUID) -> None:
        """Let a worker take the messages of these, one after another."""
        for id in ids:
            attempt = row_of(self.engine, id)["attempt"]
            found = claim_as(self.engine, id, attempt, "tests")
            if isinstance(found, Claim):
                self.running[id] = attempt

    def deliver(self) -> None:
        """Let a worker take the message of any unstarted operation that does not wait."""
        sendable = [
            row for row in self.rows()
            if row.state in {"pending", "queued"} and row.waiting_for is None
        ]  # fmt: skip
        if sendable:
            self.start(self.random.choice(sendable).id)

    def finish_all(self, failing: float = 0.0) -> None:
        """End what runs, well or to be tried again."""
        for id, attempt in list(self.running.items()):
            again = self.random.random() < failing
            ending = (
                Outcome(OperationState.PENDING, "broken", "retry", is_failure=True)
                if again
                else Outcome(OperationState.SUCCESS)
            )
            finish(self.engine, id, ending, attempt=attempt)
            del self.running[id]

    def finish(self) -> None:
        """End what runs, not always well."""
        self.finish_all(0.3)

    def cancel(self) -> None:
        """Cancel any unstarted one."""
        id = self.random.choice(self.ids)
        act(self.engine, refusals.cancel, id, "cancelled")

    def rows(self) -> list[sa.Row[tuple[UUID, str, int, UUID | None]]]:
        table = operations_table.c
        query = sa.select(table.id, table.state, table.attempt, table.waiting_for)
        return list(fetched(self.engine, query.order_by(table.id)))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("overlap", "catch_up"),
    [("skip", "latest"), ("queue", "latest"), ("replace", "latest"), ("queue", "all")],
)
def test_whatever_meets_each_operation_ends(
    engine: sa.Engine, overlap: str, catch_up: str, seed: int
) -> None:
    policy = {"overlap": overlap, "catch_up": catch_up, "max_waiting": 50}
    play = Play(engine, make_action(engine, policy=policy), seed)
    acts = [play.record, play.deliver, play.deliver, play.finish, play.cancel]

    while len(play.ids) < COUNT:
        play.random.choices(acts, [4, 4, 4, 3, 1])[0]() if play.ids else play.record()
    for _ in range(20 * COUNT):
        play.deliver()
        play.finish()
        act(engine, put_back.release_stranded)
        states = {row.state for row in play.rows()}
        if states <= ENDED:
            break

    assert states <= ENDED
    asked = [row_of(engine, id) for id in play.ids]
    skipped = [one["triggerer"] for one in asked if one["state"] in {"skipped", "dropped"}]
    assert not [one for one in skipped if one.startswith(("Backfill", "Retry"))]


def test_who_waits_for_a_released_one_of_the_other_kind_closes_no_circle(
    engine: sa.Engine,
) -> None:
    """Once a backfilled one waited for a scheduled one that waited for an older backfilled one."""
    play = Play(engine, make_action(engine, policy={"overlap": "queue", "max_waiting": 50}), 0)
    scheduled, _, backfilled, _ = TRIGGERERS
    first, early, last = play.at(1, backfilled), play.at(9, scheduled), play.at(5, backfilled)
    play.start(first, early, last)
    play.finish_all()
    second = play.at(3, backfilled)
    play.start(second, play.at(2, backfilled), late := play.at(10, scheduled))
    play.finish_all()
    play.start(early, late)
    play.finish_all()
    play.start(last)

    for _ in range(20):
        play.deliver()
        play.finish_all()
        act(engine, put_back.release_stranded)

    assert {row.state for row in play.rows()} == {"success"}
