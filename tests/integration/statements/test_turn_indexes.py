"""Turns cost a fixed number of statements, each by its index, however many operations wait."""

from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from benchmarks.filling import analyze, bulk_insert, instant
from minutebook.steps import SmallApp
from models.operation import OperationState
from models.store.conditions import WAITS_TURN
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import outbox, turns
from models.store.operations.claims import claim
from models.store.operations.finish import Ending, end
from models.tables import actions, operations
from models.turns import GIVEN_OWNER, Sharing, head_start
from scheduler.changes.change import Changed
from tests.factories import make_action, make_app, make_operation
from tests.integration.statements.acts import assert_indexed
from tests.integration.statements.conftest import MINUTE, Filled
from tests.integration.statements.plans import Statements

WAITING = 10_000
APPS = 20
COLUMNS = (
    "id small_app_id action_uid revision occurrence_at state triggerer queue task recorded_at "
    "not_before turn priority ranked_at"
)


@pytest.fixture(scope="module")
def crowded(filled: Filled) -> list[tuple[SmallApp, Changed]]:
    """Small apps with actions, of which the first has 10,000 operations that wait for a turn."""
    apps = [make_app(filled.engine, f"app{number}") for number in range(APPS)]
    found = [(app, make_action(filled.engine, app=app)) for app in apps]
    app, action = found[0]
    at = instant(filled.now)
    its = (app.id, str(action.uid), 1, at, "pending", "filled", "quick", "a task", at, at, "waits")
    ranks = [instant(filled.now - head_start(priority)) for priority in range(-100, 101)]
    rows = (
        (str(uuid4()), *its, number % 201 - 100, ranks[number % 201]) for number in range(WAITING)
    )
    bulk_insert(filled.engine, "operations", COLUMNS, rows)
    analyze(filled.engine)
    return found


def recorded(filled: Filled, crowded: list[tuple[SmallApp, Changed]], minute: int) -> list[UUID]:
    at = filled.now + minute * MINUTE
    return [make_operation(filled.engine, action, at, app=app) for app, action in crowded]


def test_what_is_sent_asks_for_all_turns_at_once(
    filled: Filled, crowded: list[tuple[SmallApp, Changed]], statements: Statements
) -> None:
    counts = []
    for minute, some in enumerate((crowded[:2], crowded)):
        ids = recorded(filled, some, minute)
        with filled.engine.begin() as connection:
            messages = [outbox.Message(id, 1, "a task", "quick") for id in ids]
            with Statements(filled.engine).captured() as seen, statements.captured():
                assert turns.sharing(connection) is Sharing.APPS
                turns.admit(connection, messages)
        counts.append(len(seen.seen))

    assert_indexed(statements, "operations_waiting_turn", "operations_with_turn")
    if filled.engine.dialect.name == "postgresql":
        assert counts[0] == counts[1]


def test_an_end_and_a_sweep_find_the_next_turn(
    filled: Filled, crowded: list[tuple[SmallApp, Changed]], statements: Statements
) -> None:
    app = crowded[0][0]
    with filled.engine.begin() as connection:
        assert turns.give_after(connection, (app.id, "heavy")) == []
        others = (operations.c.turn == "taken") | (operations.c.small_app_id != app.id)
        connection.execute(sa.update(operations).where(others).values(turn=None))
        (first,) = turns.give_after(connection, (app.id, "quick"))
        claim(connection, first.id, first.attempt, "tests", alerts=NO_ALERTS)

    with filled.engine.begin() as connection, statements.captured():
        ended = end(
            connection, first.id, first.attempt, Ending(OperationState.SUCCESS), alerts=NO_ALERTS
        )
        assert ended.lane == (app.id, "quick") == turns.lane_behind(connection, first.id)
        assert len(turns.give_after(connection, ended.lane)) == 1
        turns.release_free(connection)

    assert_indexed(statements, "operations_waiting_turn", "operations_with_turn")


def test_a_priority_is_found_by_its_index(filled: Filled, statements: Statements) -> None:
    # The other apps' actions are none of the busy ones: the priorities are asked for.
    with filled.engine.connect() as connection:
        connection.execute(sa.update(actions).values(owner=GIVEN_OWNER))
        with statements.captured():
            assert turns.sharing(connection) is Sharing.NONE
        connection.rollback()

    assert_indexed(statements, "actions_with_priority")


def test_what_goes_before_one_that_waits_is_found_by_its_index(
    filled: Filled, crowded: list[tuple[SmallApp, Changed]], statements: Statements
) -> None:
    with filled.engine.connect() as connection:
        waiting = sa.select(operations).where(WAITS_TURN).order_by(*turns.IN_ORDER)
        row = connection.execute(waiting.offset(3).limit(1)).mappings().one()
        with statements.captured():
            assert turns.ahead(connection, row).count == 3

    assert_indexed(statements, "operations_waiting_turn")
