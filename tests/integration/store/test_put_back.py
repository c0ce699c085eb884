"""Attempts and what the sweep takes back and releases: leases that ran out, what a hand broke."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.errors import LeaseLost
from models.operation import OperationState
from models.sql import database_now
from models.store import key_values, workers
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import put_back
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from models.store.operations.transitions import attempts_of
from models.store.scope import WHOLE_INSTALLATION
from models.tables import action_ends, action_state, attempts, notices
from models.worker_kinds import EXECUTE_QUICK
from runtime.sections import AlertSettings
from scheduler.changes import Change
from scheduler.on_demand.restart import retry
from tests.attempts import beat
from tests.factories import claimed, make_action, make_operation, row_of, rows_of, update_operation
from tests.ticks import LEASE, MINUTE
from tests.transactions import act, claim_as, clock_of, execute, fetched, finish

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


def test_what_cannot_be_taken_back_ends_as_failed_ones(engine: sa.Engine, action: Change) -> None:
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


def test_what_waits_for_such_a_one_is_released(engine: sa.Engine, action: Change) -> None:
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


OUTSIDE = "shop.sync"


def web_lived(engine: sa.Engine, seen_s: int, since_s: int) -> None:
    """Let web have lived without a gap, between so many seconds ago."""
    now, ago = clock_of(engine), {"seen": seen_s, "since": since_s}
    lived = {name: (now - timedelta(seconds=one)).isoformat() for name, one in ago.items()}
    act(engine, key_values.set_value, key_values.WEB, json.dumps(lived))


@pytest.mark.parametrize(
    ("task", "lived", "is_taken"),
    [
        pytest.param(OUTSIDE, None, True, id="no_web_ever"),
        pytest.param(OUTSIDE, (1, 100), True, id="it_lives"),
        pytest.param(OUTSIDE, (20, 100), False, id="it_is_away"),
        pytest.param(OUTSIDE, (1, 30), False, id="it_is_back_for_less_than_a_lease"),
        pytest.param(EXECUTE_QUICK, (20, 100), True, id="ours_need_no_web"),
    ],
)
def test_no_lease_over_http_runs_out_while_web_is_away(
    engine: sa.Engine, task: str, lived: tuple[int, int] | None, is_taken: bool
) -> None:
    id = make_operation(engine, make_action(engine), NOON)
    claimed(engine, id)
    update_operation(engine, id, task=task, heartbeat_at=database_now(-100.0))
    if lived is not None:
        web_lived(engine, *lived)

    taken = act(engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS)

    assert taken == ([(id, "pending")] if is_taken else [])


def test_a_gap_ends_with_the_next_word_of_a_web_process(engine: sa.Engine) -> None:
    web_lived(engine, 1000, 1000)
    stored = []
    for _ in range(2):
        act(engine, workers.web_seen, LEASE)
        stored.append(act(engine, key_values.json_value, key_values.WEB))

    first, second = stored
    assert first["since"] == first["seen"] == second["since"]


SCHEDULED, BACKFILLED = "Scheduled action", "Backfill 1 by ann"


def test_who_waits_for_a_released_one_of_another_kind_closes_no_circle(engine: sa.Engine) -> None:
    """Once a backfilled one waited for a scheduled one that waited for an older backfilled one."""
    action = make_action(engine, policy={"overlap": "queue", "max_waiting": 50})
    running: list[UUID] = []

    def at(minute: int, triggerer: str) -> UUID:
        return make_operation(engine, action, NOON + minute * MINUTE, triggerer)

    def start(*ids: UUID) -> None:
        running.extend(id for id in ids if isinstance(claim_as(engine, id, 1, "tests"), Claim))

    def finish_all() -> None:
        while running:
            finish(engine, running.pop(), Outcome(OperationState.SUCCESS))

    first, early, last = at(1, BACKFILLED), at(9, SCHEDULED), at(5, BACKFILLED)
    start(first, early, last)
    finish_all()
    second = at(3, BACKFILLED)
    start(second, at(2, BACKFILLED), late := at(10, SCHEDULED))
    finish_all()
    start(early, late)
    finish_all()
    start(last)

    for _ in range(20):
        free = [
            row["id"] for row in rows_of(engine, action)
            if row["state"] in {"pending", "queued"} and row["waiting_for"] is None
        ]  # fmt: skip
        start(*free[:1])
        finish_all()
        act(engine, put_back.release_stranded)

    assert {row["state"] for row in rows_of(engine, action)} == {"success"}


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAILED = Outcome(OperationState.FAILED, error="no paper", is_failure=True)
RETRIED = Outcome(OperationState.PENDING, error="no ink", reason="retry", is_failure=True)


@pytest.fixture
def operation(engine: sa.Engine) -> UUID:
    return make_operation(engine, make_action(engine), NOON)


def start(engine: sa.Engine, id: UUID, attempt: int = 1) -> None:
    assert isinstance(claim_as(engine, id, attempt, f"worker {attempt}"), Claim)


def kept(engine: sa.Engine) -> int:
    return int(fetched(engine, sa.select(sa.func.count()).select_from(attempts)).scalar_one())


def shown(engine: sa.Engine, id: UUID) -> list[tuple[Any, ...]]:
    found = act(engine, attempts_of, id)
    assert all(one["started_at"] for one in found)
    names = ("attempt", "worker", "state", "error")
    return [(*(one[name] for name in names), one["finished_at"] is not None) for one in found]


def test_the_only_attempt_has_no_row_of_its_own(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    assert shown(engine, operation) == [(1, "worker 1", "running", None, False)]

    finish(engine, operation, FAILED)

    assert shown(engine, operation) == [(1, "worker 1", "failed", "no paper", True)]
    assert kept(engine) == 0


def test_what_is_put_back_keeps_its_attempt(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    finish(engine, operation, RETRIED)
    first = (1, "worker 1", "failed", "no ink", True)
    assert shown(engine, operation) == [first]

    start(engine, operation, 2)

    assert shown(engine, operation) == [first, (2, "worker 2", "running", None, False)]


def test_a_lost_attempt_is_kept_with_its_loss(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    update_operation(engine, operation, heartbeat_at=LONG_AGO)
    take_back(engine)

    error = "lost: worker worker 1 sent no heartbeat"
    assert shown(engine, operation) == [(1, "worker 1", "lost", error, True)]


def test_what_runs_again_by_hand_keeps_its_last_attempt(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    finish(engine, operation, FAILED)
    ended_at = row_of(engine, operation)["finished_at"]

    retry(engine, operation, WHOLE_INSTALLATION, "ann")

    assert shown(engine, operation) == [(1, "worker 1", "failed", "no paper", True)]
    assert act(engine, attempts_of, operation)[0]["finished_at"] == ended_at


def test_an_attempt_that_has_moved_keeps_nothing(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    finish(engine, operation, FAILED)

    with pytest.raises(LeaseLost):
        finish(engine, operation, RETRIED)
    with pytest.raises(LeaseLost):
        act(engine, beat, operation, 1)

    assert kept(engine) == 0
