"""Event statements read what is due, among many users: by every plan they may get."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from benchmarks.filling import NEVER, analyze, bulk_insert, instant, park
from models.action.plan import Plan
from models.operation import OperationState
from models.store import retention, tick_work
from models.store.actions import dependants, watched_by_name
from models.store.key_values import EVENTS_DECIDED, set_value
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.end import Outcome
from models.store.operations.external_send import hand_over
from models.store.operations.take import Claim
from models.store.people import events as store
from models.store.people import users
from models.tables import action_cursor, operations
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.events.dependants import send_ended
from scheduler.forecast import coming
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import DEFAULT_APP, make_action, make_operation, rows_of, update_operation
from tests.integration.statements import plans
from tests.integration.statements.acts import assert_indexed
from tests.integration.statements.conftest import Copies, Filled
from tests.integration.statements.plans import Statements
from tests.ticks import DAY, MINUTE
from tests.transactions import claim_as, execute, finish

USERS = 25_000
ACTIONS = 40
NAMES = ("instance.user.created", "instance.user.activated", "instance.user.last_seen", "order")


@pytest.fixture(autouse=True)
def _big(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        plans, "BIG", plans.BIG | {"action_ends", "users", "events", "group_members"}
    )


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def crowd(request: pytest.FixtureRequest, copies: Copies) -> Iterator[Filled]:
    """25,000 users with as many events, two minutes apart, and 40 actions of distinct delays.

    Beside 30,000 actions by the clock, none of them due.
    """
    made = copies.copy(request.param)
    with made.engine.begin() as connection:
        due = action_cursor.c.next_occurrence_at <= made.now
        connection.execute(sa.update(action_cursor).where(due).values(next_occurrence_at=NEVER))
    _fill(made.engine, made.now)
    analyze(made.engine)
    yield made
    made.engine.dispose()


def _fill_ends(engine: sa.Engine, now: datetime) -> None:
    """Let as many operations of one action have ended, of which no row is left, and one be due."""
    watched = make_action(engine, name="watched", since=now)
    make_action(engine, name="after it", when={"after": {"action": "watched"}}, since=now - DAY)
    park(engine, [watched.uid])
    bulk_insert(
        engine,
        "action_ends",
        "action_uid operation_id state small_app_id ended_at",
        (
            (str(watched.uid), str(UUID(int=n)), "success", 1, instant(now - n * MINUTE))
            for n in range(USERS)
        ),
    )


def _fill(engine: sa.Engine, now: datetime) -> None:
    at = [instant(now - number * 2 * MINUTE) for number in range(USERS)]
    bulk_insert(
        engine,
        "users",
        "small_app_id id email active created_at activated_at last_seen_at",
        ((1, f"u{n}", f"u{n}@example.com", True, at[n], at[n], at[n]) for n in range(USERS)),
    )
    bulk_insert(
        engine,
        "events",
        "small_app_id event id subject occurred_at",
        ((1, "order", str(n), f"u{n}", at[n]) for n in range(USERS)),
    )
    _fill_ends(engine, now)
    bulk_insert(engine, "groups", "small_app_id name", [(1, "shop")])
    bulk_insert(
        engine,
        "group_members",
        "small_app_id group_name user_id",
        ((1, "shop", f"u{n}") for n in range(USERS)),
    )
    for number in range(ACTIONS):
        delay = f"P{number}DT30S"
        make_action(
            engine,
            since=now - 60 * DAY,
            name=f"after {number}",
            when={"after": NAMES[number % len(NAMES)], "delay": delay},
            recipients={"groups": ["shop"]},
        )
    with engine.begin() as connection:
        set_value(connection, EVENTS_DECIDED, now.isoformat())


def test_a_tick_with_events_reads_what_is_due(crowd: Filled) -> None:
    statements = Statements(crowd.engine)
    sweeper = Sweeper(timedelta(hours=1), NO_ALERTS)

    with statements.captured():
        report = tick(crowd.engine, crowd.now, sweeper)

    assert ACTIONS <= report.recorded <= 8 * ACTIONS
    assert report.missed == 0
    assert_indexed(
        statements,
        *("users_created", "users_activated", "users_last_seen", "events_due"),
        *("actions_on_events", "actions_named"),
        "group_members_of_user",
    )
    # All ends are of one action here, so the small app's index serves as well: PostgreSQL 18.
    assert statements.indexes() & {"action_ends_due", "action_ends_old"}


def test_the_last_ends_are_read_at_the_ends_of_indexes(crowd: Filled) -> None:
    action = make_action(crowd.engine, name="waits")
    id = make_operation(crowd.engine, action, crowd.now)
    update_operation(crowd.engine, id, not_before=crowd.now + DAY)
    statements = Statements(crowd.engine)

    with statements.captured(), reading(crowd.engine) as connection:
        tick_work.look(connection, None, MINUTE, MINUTE)

    assert_indexed(statements, "operations_to_send", "action_ends_old")
    assert {"attempts_pkey", "sqlite_autoindex_attempts_1"} & statements.indexes()


def test_an_end_finds_what_depends_on_it(crowd: Filled) -> None:
    action = make_action(crowd.engine, name="ends")
    make_action(crowd.engine, name="after its end", when={"after": {"action": "ends"}})
    ids = [make_operation(crowd.engine, action, crowd.now + n * MINUTE) for n in range(3)]
    assert isinstance(claim_as(crowd.engine, ids[0], 1, "tests"), Claim)
    execute(crowd.engine, sa.update(operations).values(send_started_at=crowd.now))
    statements = Statements(crowd.engine, is_repeated=False)

    with statements.captured():
        send_ended(crowd.engine, finish(crowd.engine, ids[0], Outcome(OperationState.SUCCESS)))
    with statements.captured(), crowd.engine.begin() as connection:
        for id in ids[1:]:
            hand_over(connection, (id, 1), "tests", AlertSettings())
        dependants(connection, DEFAULT_APP.id, "ends", 10)
        watched_by_name(connection, DEFAULT_APP.id)
        retention.prune_raised(connection, "ends", DEFAULT_APP.id, timedelta(days=900), 100)

    assert_indexed(statements, "actions_on_events", "action_ends_old")


def test_a_claim_about_a_user_reads_that_user(crowd: Filled) -> None:
    action = make_action(
        crowd.engine,
        name="claimed",
        when={"on": "instance.user.last_seen"},
        since=crowd.now - DAY,
        recipients={"groups": ["shop"]},
    )
    tick(crowd.engine, crowd.now, Sweeper(MINUTE, NO_ALERTS))
    statements = Statements(crowd.engine)

    id = rows_of(crowd.engine, action)[-1]["id"]

    with statements.captured():
        taken = claim_as(crowd.engine, id, 1, "tests")

    assert isinstance(taken, Claim)
    assert_indexed(statements, "group_members_of_user")


def test_telling_previewing_and_pruning(crowd: Filled) -> None:
    action = make_action(
        crowd.engine, name="shown", when={"after": "instance.user.created", "delay": "P30D"}
    )
    plan: Plan = action.plan
    statements = Statements(crowd.engine, is_repeated=False)

    with statements.captured(), crowd.engine.begin() as connection:
        due = coming(connection, (DEFAULT_APP.id, action.uid), plan, crowd.now, 5)
        store.add(connection, DEFAULT_APP.id, "order", "0", "u0", crowd.now)
        users.move(connection, DEFAULT_APP.id, "u0", "last_seen_at", crowd.now)
        retention.prune_raised(connection, "events", DEFAULT_APP.id, timedelta(days=900), 100)

    assert len(due) == 5
    assert_indexed(statements, "users_created", "actions_on_events")
