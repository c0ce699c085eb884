"""Whoever keeps the row of an action locked delays neither ticks nor what its operations become."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import external_send
from models.store.operations.end import Outcome
from models.tables import actions
from scheduler.changes import Change
from tests.attempts import end
from tests.factories import claimed, make_action, make_operation, rows_of, spoil, update_operation
from tests.ticks import MINUTE, run_tick
from tests.transactions import act

pytestmark = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


@pytest.fixture
def action(engine: sa.Engine) -> Change:
    """A new action, whose row a person has locked and forgotten."""
    return make_action(engine, name="new", since=NOON - 20 * MINUTE)


@pytest.fixture
def locked(engine: sa.Engine, action: Change) -> Iterator[None]:
    with engine.begin() as forgotten:
        row = sa.select(actions.c.uid).where(actions.c.uid == action.uid)
        forgotten.execute(row.with_for_update())
        yield


def impatient(connection: sa.Connection) -> None:
    connection.exec_driver_sql("SET LOCAL lock_timeout = '300ms'")


def ends(engine: sa.Engine, id: UUID) -> None:
    claimed(engine, id)
    with engine.begin() as connection:
        impatient(connection)
        end(connection, id, 1, Outcome(OperationState.SUCCESS), alerts=NO_ALERTS)


def is_handed_over(engine: sa.Engine, id: UUID) -> None:
    update_operation(engine, id, send_started_at=NOON)
    with engine.begin() as connection:
        impatient(connection)
        external_send.hand_over(connection, (id, 1), "sent", NO_ALERTS)


@pytest.mark.parametrize("becomes", [ends, is_handed_over])
def test_the_first_end_of_its_operations_is_written(
    engine: sa.Engine,
    action: Change,
    locked: None,
    becomes: Callable[[sa.Engine, UUID], None],
) -> None:
    becomes(engine, make_operation(engine, action, NOON))

    assert rows_of(engine, action)[0]["state"] in {"success", "handed_over"}


@pytest.mark.timeout(20)
def test_a_tick_records_what_is_due_and_what_it_missed(
    engine: sa.Engine, action: Change, locked: None
) -> None:
    report = run_tick(engine, NOON)

    assert (report.recorded, report.locked) == (1, None)
    assert report.missed > 10


@pytest.mark.timeout(20)
def test_a_broken_one_is_left_to_the_next_tick(
    engine: sa.Engine, action: Change, locked: None
) -> None:
    """It is quarantined once its row can be written; the others are decided meanwhile."""
    broken = make_action(engine, name="broken", since=NOON - MINUTE)
    act(engine, spoil, actions.c.uid == broken.uid, plan="{}")
    with engine.begin() as forgotten:
        row = sa.select(actions.c.uid).where(actions.c.uid == broken.uid)
        forgotten.execute(row.with_for_update())
        first = run_tick(engine, NOON)

    second = run_tick(engine, NOON + MINUTE)

    assert (first.recorded, first.quarantined, second.quarantined) == (1, 0, 1)
