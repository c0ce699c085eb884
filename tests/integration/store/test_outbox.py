"""What is reserved for sending, and what becomes of it."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.sql import database_now
from models.store.operations import reserve
from models.store.operations.reserve import Message
from tests.factories import make_action, make_operation, row_of, update_operation
from tests.ticks import MINUTE
from tests.transactions import act, fetched

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def make_sendable(engine: sa.Engine, *ages_s: float) -> list[UUID]:
    """Record operations that could have been sent so many seconds ago."""
    action = make_action(engine, policy={"overlap": "allow"})
    ids = [make_operation(engine, action, NOON + n * MINUTE) for n in range(len(ages_s))]
    for id, age_s in zip(ids, ages_s, strict=True):
        update_operation(engine, id, not_before=database_now(-age_s))
    return ids


def mark(engine: sa.Engine, id: UUID, attempt: int) -> None:
    act(engine, reserve.mark_sent, [Message(id, attempt, "a task", "quick")])


def test_what_waits_for_the_longest_is_reserved_first(engine: sa.Engine) -> None:
    ids = make_sendable(engine, 10, 30, 20)

    reserved = act(engine, reserve.reserve_sendable, 2)

    assert {one.id for one in reserved} == {ids[1], ids[2]}


def test_what_may_be_with_another_application_is_not_sent_again(engine: sa.Engine) -> None:
    (id,) = make_sendable(engine, 10)
    update_operation(engine, id, send_started_at=database_now(-10.0))

    assert act(engine, reserve.reserve_sendable, 10) == []


def test_a_late_mark_of_another_attempt_changes_nothing(engine: sa.Engine) -> None:
    (id,) = make_sendable(engine, 10)
    update_operation(engine, id, attempt=2)

    mark(engine, id, 1)

    assert (row_of(engine, id)["state"], row_of(engine, id)["sendings"]) == ("pending", 0)


@pytest.mark.parametrize(
    ("sendings", "minutes"), [(0, 5), (1, 10), (2, 20), (3, 40), (4, 60), (9, 60)]
)
def test_a_message_is_repeated_ever_later_and_at_last_each_hour(
    engine: sa.Engine, sendings: int, minutes: int
) -> None:
    (id,) = make_sendable(engine, 10)
    update_operation(engine, id, sendings=sendings)

    mark(engine, id, 1)

    now = fetched(engine, sa.select(database_now())).scalar_one()
    left = row_of(engine, id)["not_before"] - now
    assert minutes * MINUTE - MINUTE < left <= minutes * MINUTE
