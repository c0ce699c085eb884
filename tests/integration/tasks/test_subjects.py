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
from models.store.operations.start_checks import NotClaimed
from models.tables import action_cursor, operations, users
from scheduler.changes import Change
from scheduler.on_demand.manual import run_now
from tests.factories import DEFAULT_APP, row_of, rows_of
from tests.integration.tasks.crew import Work
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, execute, fetched

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
ON_SEEN = {"on": "instance.user.last_seen"}


class Greeter(Work):
    """What the step `greet` was given, each time it ran, and the users that it is about."""

    def __init__(self, work: Work) -> None:
        super().__init__(work.engine, work.settings)
        self.given: list[minutebook.StepContext] = []

    def greets(self, **changes: Any) -> Change:
        """Store an action that greets whoever was seen; all events are decided up to `NOW`."""

        def greet(context: minutebook.StepContext) -> None:
            self.given.append(context)
            context.checkpoint["times"] = context.checkpoint.get("times", 0) + 1

        act(self.engine, key_values.set_value, key_values.EVENTS_DECIDED, NOW.isoformat())
        action = self.action(greet, **{"when": ON_SEEN, **changes})
        began = sa.update(action_cursor).values(effective_from=datetime(2026, 1, 1, tzinfo=UTC))
        execute(self.engine, began)
        return action

    def knows(self, *ids: str, **values: Any) -> None:
        for id in ids:
            its = {"small_app_id": DEFAULT_APP.id, "id": id, "email": f"{id}@example.com"}
            at = {"created_at": NOW, "activated_at": NOW}
            row = {**its, **at, "name": id.title(), "active": True, **values}
            execute(self.engine, sa.insert(users).values(row))

    def update(self, who: str, **values: Any) -> None:
        execute(self.engine, sa.update(users).where(users.c.id == who).values(**values))

    def sees(self, who: str, at: datetime) -> UUID:
        """Let a user be seen; return the id of what the next tick makes of it."""
        self.update(who, last_seen_at=at)
        run_tick(self.engine, at + MINUTE)
        return self.ids()[-1]

    def ids(self) -> list[UUID]:
        """Return the ids of all operations, the oldest occurrence first."""
        query = sa.select(operations.c.id).order_by(operations.c.occurrence_at)
        return list(fetched(self.engine, query).scalars())


@pytest.fixture
def greeter(work: Work) -> Greeter:
    return Greeter(work)


def test_the_subject_alone_is_the_recipient(greeter: Greeter) -> None:
    greeter.greets(recipients={"groups": ["all"]})
    greeter.knows("ann", "ben")

    assert greeter.attempt(greeter.sees("ann", NOW)) == OperationState.SUCCESS

    (context,) = greeter.given
    assert context.subject == "ann"
    assert [(one.id, one.address, one.name) for one in context.recipients] == [
        ("ann", "ann@example.com", "Ann")
    ]


def test_what_an_action_knows_is_kept_for_each_subject(greeter: Greeter) -> None:
    greeter.greets()
    greeter.knows("ann", "ben")
    for number, id in enumerate(("ann", "ben", "ann")):
        operation = greeter.sees(id, NOW + number * MINUTE)
        assert greeter.attempt(operation) == OperationState.SUCCESS

    found = [(one.subject, one.run_number, one.checkpoint["times"]) for one in greeter.given]
    assert found == [("ann", 1, 1), ("ben", 1, 1), ("ann", 2, 2)]
    assert greeter.given[2].last_success_at is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"last_seen_at": NOW + MINUTE}, "seen again", id="seen_again"),
        pytest.param({"active": False}, "recipient", id="switched_off"),
        pytest.param({"id": "renamed"}, "recipient", id="gone"),
    ],
)
def test_what_no_longer_holds_at_the_start_is_skipped(
    greeter: Greeter, change: dict[str, Any], reason: str
) -> None:
    greeter.greets()
    greeter.knows("ann")
    operation = greeter.sees("ann", NOW)
    greeter.update("ann", **change)

    assert greeter.attempt(operation) == NotClaimed.SKIPPED

    row = row_of(greeter.engine, operation)
    assert (row["state"], row["reason"], greeter.given) == ("skipped", reason, [])


def test_who_was_seen_again_moves_the_occurrence(greeter: Greeter) -> None:
    delay = timedelta(days=7, seconds=30)
    when = {"after": "instance.user.last_seen", "delay": "P7DT30S"}
    action = greeter.greets(when=when)
    greeter.knows("ann", last_seen_at=NOW - delay + MINUTE)
    run_tick(greeter.engine, NOW)
    greeter.update("ann", last_seen_at=NOW)

    for at in (NOW + MINUTE, NOW + delay):
        run_tick(greeter.engine, at)

    assert [row["occurrence_at"] for row in rows_of(greeter.engine, action)] == [NOW + delay]


def test_a_user_of_the_same_instant_who_was_activated_is_not_asked_when_seen(
    greeter: Greeter,
) -> None:
    greeter.greets(when={"on": "instance.user.activated"})
    greeter.knows("ann", last_seen_at=NOW)
    run_tick(greeter.engine, NOW + MINUTE)
    (operation,) = greeter.ids()
    greeter.update("ann", last_seen_at=NOW + MINUTE)

    assert greeter.attempt(operation) == OperationState.SUCCESS


def test_a_manual_run_is_about_the_user_who_is_named(greeter: Greeter) -> None:
    action = greeter.greets()
    greeter.knows("ann", "ben")
    other, _ = run_now(greeter.engine, action.uid, "tests", "ben")

    operation, _ = run_now(greeter.engine, action.uid, "tests", "ann")

    assert greeter.attempt(operation) == OperationState.SUCCESS
    assert [one.subject for one in greeter.given] == ["ann"]
    assert row_of(greeter.engine, other)["overlap_key"] is None


@pytest.mark.parametrize(
    ("name", "user", "error", "says"),
    [
        ("seen", (), Refused, "--user"),
        ("seen", ("nobody",), NotFound, "user list"),
        ("seen", ("off",), Refused, "exclude 'off'"),
        ("clock", ("off",), Refused, "without --user"),
    ],
)
def test_a_manual_run_about_nobody_or_somebody_left_out_is_refused(
    greeter: Greeter, name: str, user: tuple[()] | tuple[str], error: type[Exception], says: str
) -> None:
    when = ON_SEEN if name == "seen" else {"cron_rule": "0 0 * * *"}
    action = greeter.greets(when=when)
    greeter.knows("off", active=False)

    with pytest.raises(error, match=says):
        run_now(greeter.engine, action.uid, "tests", *user)
    assert greeter.ids() == []
