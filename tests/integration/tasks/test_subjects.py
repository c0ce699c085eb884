"""Operations about a user, run in this process: the user still counts, and is the recipient."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

import minutebook
from models.errors import NotFound, Refused
from models.operation import OperationState
from models.store import key_values
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.start_checks import NotClaimed
from models.store.scope import WHOLE_INSTALLATION
from models.tables import users
from runtime.config import Settings
from scheduler.changes import Change
from scheduler.changes.change import create_all
from scheduler.on_demand.manual import run_now
from scheduler.on_demand.restart import retry
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import DEFAULT_APP, author, make_document, row_of, rows_of
from tests.ticks import MINUTE

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
ON_SEEN = {"on": "instance.user.last_seen"}


@pytest.fixture
def contexts(own_steps: None) -> list[minutebook.StepContext]:
    """What the step `greet` was given, each time it ran."""
    given: list[minutebook.StepContext] = []

    @minutebook.step("greet")
    def greet(context: minutebook.StepContext) -> None:
        given.append(context)
        context.checkpoint["times"] = context.checkpoint.get("times", 0) + 1

    return given


def make_users(engine: sa.Engine, *ids: str, **values: Any) -> None:
    row = {"small_app_id": DEFAULT_APP.id, "active": True, "created_at": NOW, "activated_at": NOW}
    with engine.begin() as connection:
        for id in ids:
            named = {"id": id, "email": f"{id}@example.com", "name": id.title()}
            connection.execute(sa.insert(users).values({**row, **named, **values}))


def update_user(engine: sa.Engine, who: str, **values: Any) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(users).where(users.c.id == who).values(**values))


def make_event_action(engine: sa.Engine, **changes: Any) -> Change:
    """Store an action that greets whoever was seen; all events are decided up to `NOW`."""
    document = make_document(**{"when": ON_SEEN, "operations": {"greet": True}, **changes})
    with engine.begin() as connection:
        key_values.set_value(connection, key_values.EVENTS_DECIDED, NOW.isoformat())
    action = create_all(engine, [document], author(Registry().steps))[0]
    with engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE action_cursor SET effective_from = '2026-01-01 00:00:00.000000'")
        )
    return action


def seen(engine: sa.Engine, id: str, at: datetime) -> UUID:
    """Let a user be seen; return the id of what the next tick makes of it."""
    update_user(engine, id, last_seen_at=at)
    tick(engine, at + MINUTE, Sweeper(MINUTE, NO_ALERTS))
    with engine.connect() as connection:
        query = sa.text("SELECT id FROM operations ORDER BY occurrence_at DESC LIMIT 1")
        return UUID(str(connection.execute(query).scalar_one()))


def run_one(engine: sa.Engine, settings: Settings, operation: UUID, attempt: int = 1) -> str:
    return run_attempt(engine, settings, Registry(), (operation, attempt), "tests")


def test_the_subject_alone_is_the_recipient(
    engine: sa.Engine, settings: Settings, contexts: list[minutebook.StepContext]
) -> None:
    make_event_action(engine, recipients={"groups": ["all"]})
    make_users(engine, "ann", "ben")

    assert run_one(engine, settings, seen(engine, "ann", NOW)) == OperationState.SUCCESS

    (context,) = contexts
    assert context.subject == "ann"
    assert [(one.id, one.address, one.name) for one in context.recipients] == [
        ("ann", "ann@example.com", "Ann")
    ]


def test_what_an_action_knows_is_kept_for_each_subject(
    engine: sa.Engine, settings: Settings, contexts: list[minutebook.StepContext]
) -> None:
    make_event_action(engine)
    make_users(engine, "ann", "ben")
    for number, id in enumerate(("ann", "ben", "ann")):
        operation = seen(engine, id, NOW + number * MINUTE)
        assert run_one(engine, settings, operation) == OperationState.SUCCESS

    found = [(one.subject, one.run_number, one.checkpoint["times"]) for one in contexts]
    assert found == [("ann", 1, 1), ("ben", 1, 1), ("ann", 2, 2)]
    assert contexts[2].last_success_at is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"last_seen_at": NOW + MINUTE}, "seen again", id="seen_again"),
        pytest.param({"active": False}, "recipient", id="switched_off"),
        pytest.param({"id": "renamed"}, "recipient", id="gone"),
    ],
)
def test_what_no_longer_holds_at_the_start_is_skipped(
    engine: sa.Engine,
    settings: Settings,
    contexts: list[minutebook.StepContext],
    change: dict[str, Any],
    reason: str,
) -> None:
    make_event_action(engine)
    make_users(engine, "ann")
    operation = seen(engine, "ann", NOW)
    update_user(engine, "ann", **change)

    assert run_one(engine, settings, operation) == NotClaimed.SKIPPED

    row = row_of(engine, operation)
    assert (row["state"], row["reason"], contexts) == ("skipped", reason, [])


def test_who_was_seen_again_moves_the_occurrence(
    engine: sa.Engine, settings: Settings, contexts: list[minutebook.StepContext]
) -> None:
    delay = timedelta(days=7, seconds=30)
    action = make_event_action(
        engine, when={"after": "instance.user.last_seen", "delay": "P7DT30S"}
    )
    make_users(engine, "ann", last_seen_at=NOW - delay + MINUTE)
    tick(engine, NOW, Sweeper(MINUTE, NO_ALERTS))
    update_user(engine, "ann", last_seen_at=NOW)

    for at in (NOW + MINUTE, NOW + delay):
        tick(engine, at, Sweeper(MINUTE, NO_ALERTS))

    assert [row["occurrence_at"] for row in rows_of(engine, action)] == [NOW + delay]


def test_a_user_of_the_same_instant_who_was_activated_is_not_asked_when_seen(
    engine: sa.Engine, settings: Settings, contexts: list[minutebook.StepContext]
) -> None:
    make_event_action(engine, when={"on": "instance.user.activated"})
    make_users(engine, "ann", last_seen_at=NOW)
    tick(engine, NOW + MINUTE, Sweeper(MINUTE, NO_ALERTS))
    (operation,) = _ids(engine)
    update_user(engine, "ann", last_seen_at=NOW + MINUTE)

    assert run_one(engine, settings, operation) == OperationState.SUCCESS


def test_a_missed_one_that_is_run_after_all_is_about_its_subject(
    engine: sa.Engine, settings: Settings, contexts: list[minutebook.StepContext]
) -> None:
    action = make_event_action(engine)
    make_users(engine, "ann", last_seen_at=NOW + MINUTE)
    tick(engine, NOW + 60 * MINUTE, Sweeper(MINUTE, NO_ALERTS))
    (missed,) = rows_of(engine, action)

    repeated, _ = retry(engine, missed["id"], WHOLE_INSTALLATION, "tests")
    ended = run_one(engine, settings, missed["id"], repeated.attempt)

    assert (missed["state"], ended) == ("missed", OperationState.SUCCESS)
    assert [one.subject for one in contexts] == ["ann"]
    assert row_of(engine, missed["id"])["overlap_key"] is None


def _ids(engine: sa.Engine) -> list[UUID]:
    with engine.connect() as connection:
        query = sa.text("SELECT id FROM operations")
        return [UUID(str(id)) for id in connection.execute(query).scalars()]


def test_a_manual_run_is_about_the_user_who_is_named(
    engine: sa.Engine, settings: Settings, contexts: list[minutebook.StepContext]
) -> None:
    action = make_event_action(engine)
    make_users(engine, "ann", "ben")
    other, _ = run_now(engine, action.uid, "tests", "ben")

    operation, _ = run_now(engine, action.uid, "tests", "ann")

    assert run_one(engine, settings, operation) == OperationState.SUCCESS
    assert [one.subject for one in contexts] == ["ann"]
    assert row_of(engine, other)["overlap_key"] is None


def test_a_manual_run_about_nobody_or_somebody_left_out_is_refused(
    engine: sa.Engine, contexts: list[minutebook.StepContext]
) -> None:
    action = make_event_action(engine)
    by_clock = make_event_action(engine, name="clock", when={"cron_rule": "0 0 * * *"})
    make_users(engine, "off", active=False)

    with pytest.raises(Refused, match="--user"):
        run_now(engine, action.uid, "tests")
    with pytest.raises(NotFound, match="user list"):
        run_now(engine, action.uid, "tests", "nobody")
    with pytest.raises(Refused, match="exclude 'off'"):
        run_now(engine, action.uid, "tests", "off")
    with pytest.raises(Refused, match="without --user"):
        run_now(engine, by_clock.uid, "tests", "off")
    assert _ids(engine) == []
