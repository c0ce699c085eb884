"""Whoever keeps the row of an action locked delays neither ticks nor what its operations become."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import external_send
from models.store.operations.end import Outcome
from models.tables import actions
from scheduler.changes import Change
from tests.factories import claimed, make_action, make_operation, row_of, spoil, update_operation
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, finish

pytestmark = [
    pytest.mark.parametrize("settings", ["postgresql"], indirect=True),
    pytest.mark.timeout(20, func_only=True),
]

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


@pytest.fixture
def action(engine: sa.Engine) -> Iterator[Change]:
    """A new action, whose row a person has locked and forgotten."""
    made = make_action(engine, name="new", since=NOON - 20 * MINUTE)
    with engine.begin() as forgotten:
        forgotten.execute(sa.select(actions.c.uid).with_for_update())
        yield made


@pytest.mark.parametrize("is_handed_over", [False, True], ids=["ends", "is_handed_over"])
def test_the_first_end_of_its_operations_is_written(
    engine: sa.Engine, action: Change, is_handed_over: bool
) -> None:
    id = make_operation(engine, action, NOON)

    if is_handed_over:
        update_operation(engine, id, send_started_at=NOON)
        act(engine, external_send.hand_over, (id, 1), "sent", NO_ALERTS)
    else:
        claimed(engine, id)
        finish(engine, id, Outcome(OperationState.SUCCESS))

    assert row_of(engine, id)["state"] == ("handed_over" if is_handed_over else "success")


@pytest.mark.usefixtures("action")
def test_a_tick_records_what_is_due_and_what_it_missed(engine: sa.Engine) -> None:
    report = run_tick(engine, NOON)

    assert (report.recorded, report.locked) == (1, None)
    assert report.missed > 10


@pytest.mark.usefixtures("action")
def test_a_broken_one_is_left_to_the_next_tick(engine: sa.Engine) -> None:
    """It is quarantined once its row can be written; the others are decided meanwhile."""
    broken = make_action(engine, name="broken", since=NOON - MINUTE)
    its = actions.c.uid == broken.uid
    act(engine, spoil, its, plan="{}")
    with engine.begin() as forgotten:
        forgotten.execute(sa.select(actions.c.uid).where(its).with_for_update())
        first = run_tick(engine, NOON)

    second = run_tick(engine, NOON + MINUTE)

    assert (first.recorded, first.quarantined, second.quarantined) == (1, 0, 1)
