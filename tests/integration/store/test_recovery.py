"""What the sweep makes of lost operations whose rows a hand broke."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.store.operations import put_back
from models.store.operations.take import Claim
from models.tables import action_ends, action_state, notices
from runtime.sections import AlertSettings
from scheduler.changes import Change
from tests.factories import make_action, make_operation, row_of, update_operation
from tests.ticks import LEASE, MINUTE
from tests.transactions import act, claim_as, execute, fetched

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
ALERTS = AlertSettings(mail=("ops@example.com",), after=1)


@pytest.fixture
def action(engine: sa.Engine) -> Change:
    """An action on whose end another one depends."""
    action = make_action(engine)
    after = {"after": {"action": action.name, "ends": "failed"}}
    make_action(engine, name="clean up", when=after)
    return action


def lose(engine: sa.Engine, action: Change, at: datetime) -> UUID:
    """Start an operation whose worker falls silent."""
    id = make_operation(engine, action, at)
    assert isinstance(claim_as(engine, id, 1, "tests"), Claim)
    update_operation(engine, id, heartbeat_at=NOON - timedelta(days=365))
    return id


def break_row(engine: sa.Engine, id: UUID) -> None:
    """Write a count of losses that no other follows, so that the loss cannot be written."""
    most = 2**31 - 1 if engine.dialect.name == "postgresql" else 2**63 - 1
    its = sa.text(f"UPDATE operations SET losses = {most} WHERE id = :id")
    kind = sa.bindparam("id", type_=action_state.c.action_uid.type)
    execute(engine, its.bindparams(kind), {"id": id})


def take_back(engine: sa.Engine) -> list[tuple[UUID, str]]:
    return act(engine, put_back.take_back_lost, LEASE, 10, ALERTS)


def test_one_that_cannot_be_taken_back_ends_as_any_failed_one(
    engine: sa.Engine, action: Change
) -> None:
    id = lose(engine, action, NOON)
    break_row(engine, id)

    assert take_back(engine) == [(id, "failed")]

    row = row_of(engine, id)
    assert (row["state"], row["reason"]) == ("failed", "broken")
    assert row["error"].startswith("it could not be taken back: ")
    known = fetched(engine, sa.select(action_state)).one()
    raised = fetched(engine, sa.select(action_ends.c.operation_id)).scalars().all()
    told = fetched(engine, sa.select(notices.c.kind)).scalars().all()
    assert (known.last_state, known.failures_in_row, known.run_number) == ("failed", 1, 1)
    assert (raised, told) == ([id], ["finding_began"])


def test_what_waits_for_one_that_cannot_be_taken_back_is_released(
    engine: sa.Engine, action: Change
) -> None:
    id = lose(engine, action, NOON)
    next_one = make_operation(engine, action, NOON + MINUTE)
    update_operation(engine, next_one, waiting_for=id)
    break_row(engine, id)

    take_back(engine)

    assert row_of(engine, next_one)["waiting_for"] is None


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_one_whose_action_a_hand_deleted_fails_and_the_others_are_taken_back(
    engine: sa.Engine, action: Change
) -> None:
    orphan = lose(engine, action, NOON)
    sound = lose(engine, make_action(engine, name="sound"), NOON)
    break_row(engine, orphan)
    update_operation(engine, orphan, action_uid=UUID(int=1))

    assert dict(take_back(engine)) == {orphan: "failed", sound: "pending"}
