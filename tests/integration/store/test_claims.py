"""Claim, end and take back operations."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from benchmarks.filling import bulk_insert, instant
from models.errors import LeaseLost
from models.operation import OperationState
from models.sql import database_now
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import put_back, refusals, reserve
from models.store.operations.causes import Causes
from models.store.operations.end import Outcome
from models.store.operations.record import keep_newest
from models.store.operations.start_checks import TAKEN, NotClaimed, NotStarted
from models.store.operations.take import Claim, ClaimRequest, claim
from models.tables import action_state, operations
from scheduler.changes import editing
from tasks import lease
from tests.attempts import beat
from tests.factories import author, claimed, make_action, make_operation, row_of, update_operation
from tests.ticks import LEASE, MINUTE
from tests.transactions import act, claim_as, execute, fetched, finish

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_two_claims_side_by_side_have_one_winner(engine: sa.Engine) -> None:
    operation = make_operation(engine, make_action(engine), NOON)
    start = threading.Barrier(4)

    def take(worker: str) -> object:
        start.wait()
        return claim_as(engine, operation, 1, worker)

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(take, ("w0", "w1", "w2", "w3")))

    assert sum(isinstance(one, Claim) for one in won) == 1
    assert won.count(TAKEN) == 3


def test_a_worker_that_asks_twice_with_one_secret_has_one_claim(engine: sa.Engine) -> None:
    wanted = ClaimRequest(make_operation(engine, make_action(engine), NOON), 1, "tests")

    first, again = (act(engine, claim, wanted, NO_ALERTS) for _ in range(2))

    assert isinstance(first, Claim)
    assert isinstance(again, Claim)
    assert first.key == again.key == wanted.key
    assert act(engine, claim, ClaimRequest(wanted.id, 1, "tests"), NO_ALERTS) is TAKEN


def made(engine: sa.Engine, count: int, **policy: Any) -> list[UUID]:
    """Record operations of an action, a minute apart."""
    action = make_action(engine, policy=policy)
    return [make_operation(engine, action, NOON + n * MINUTE) for n in range(count)]


def _end(engine: sa.Engine, operation: UUID) -> list[UUID]:
    ended = finish(engine, operation, Outcome(OperationState.SUCCESS))
    return [one.id for one in ended.released]


@pytest.mark.parametrize(
    ("overlap", "outcome", "state"),
    [
        pytest.param("skip", NotClaimed.SKIPPED, "skipped", id="skip"),
        pytest.param("queue", NotClaimed.WAITS, "pending", id="queue"),
        pytest.param("replace", NotClaimed.WAITS, "pending", id="replace"),
        pytest.param("allow", Claim, "running", id="allow"),
    ],
)
def test_a_second_operation_meets_the_running_one_by_policy(
    engine: sa.Engine, overlap: str, outcome: object, state: str
) -> None:
    one, two = made(engine, 2, overlap=overlap)
    claimed(engine, one)

    result = claimed(engine, two)

    assert type(result) is outcome or result is outcome
    row = row_of(engine, two)
    assert row["state"] == state
    if result is NotClaimed.WAITS:
        assert (row["attempt"], row["waiting_for"]) == (1, one)
    was_asked = row_of(engine, one)["cancel_requested_at"] is not None
    assert was_asked == (overlap == "replace")


def test_one_that_waits_ignores_a_late_mark_and_its_message_once_more(engine: sa.Engine) -> None:
    one, two = made(engine, 2, overlap="queue")
    claimed(engine, one)

    # Its worker is faster than the process that sent it.
    assert claimed(engine, two) is NotClaimed.WAITS
    act(engine, reserve.mark_sent, [reserve.Message(two, 1, "a task", "quick")])
    assert (row_of(engine, two)["state"], row_of(engine, two)["sendings"]) == ("pending", 0)
    assert claimed(engine, two) is NotClaimed.WAITS

    assert _end(engine, one) == [two]
    assert isinstance(claimed(engine, two), Claim)
    assert claimed(engine, two) is NotClaimed.TAKEN
    assert row_of(engine, two)["attempt"] == 1


def test_the_end_of_the_running_one_releases_the_next_in_order(engine: sa.Engine) -> None:
    ids = made(engine, 4, overlap="queue", max_waiting=2)
    claimed(engine, ids[0])
    for waiting in ids[1:]:
        claimed(engine, waiting)

    assert row_of(engine, ids[1])["state"] == "skipped"
    assert _end(engine, ids[0]) == [ids[2]]
    assert row_of(engine, ids[3])["waiting_for"] == ids[2]
    assert isinstance(claimed(engine, ids[2]), Claim)
    assert _end(engine, ids[2]) == [ids[3]]


def test_scheduled_ones_that_wait_go_before_requested_ones(engine: sa.Engine) -> None:
    action = make_action(engine, policy={"overlap": "queue", "max_waiting": 9})
    first, *scheduled = [make_operation(engine, action, NOON + n * MINUTE) for n in range(3)]
    requested = [make_operation(engine, action, NOON - n * 60 * MINUTE, "Backfill") for n in (2, 1)]
    claimed(engine, first)
    for other in (*requested, *scheduled):
        assert claimed(engine, other) is NotClaimed.WAITS

    order, ended = [], first
    while released := _end(engine, ended):
        [ended] = released
        claimed(engine, ended)
        order.append(ended)

    assert order == [*scheduled, *requested]


def test_a_pause_skips_what_waits_one_after_the_other(engine: sa.Engine) -> None:
    action = make_action(engine, policy={"catch_up": "all"})
    first, *others = [make_operation(engine, action, NOON + n * MINUTE) for n in range(4)]
    claimed(engine, first)
    for other in others:
        assert claimed(engine, other) is NotClaimed.WAITS
    editing.set_active(engine, action.uid, active=False, author=author())

    released = _end(engine, first)
    for other in others:
        assert released == [other]
        kept = claim_as(engine, other, 1, "tests")
        assert isinstance(kept, NotStarted)
        released = [one.id for one in kept.ended.released] if kept.ended else []

    assert [row_of(engine, other)["state"] for other in others] == ["skipped"] * 3


@pytest.mark.parametrize("is_gone", [False, True], ids=["behind_an_ended", "behind_a_pruned"])
def test_stranded_operations_are_released_by_the_sweep(engine: sa.Engine, is_gone: bool) -> None:
    one, two = made(engine, 2, overlap="queue")
    claimed(engine, one)
    claimed(engine, two)
    if is_gone:
        update_operation(engine, two, waiting_for=UUID(int=7))
    else:
        update_operation(engine, one, state="failed", finished_at=NOON)

    assert act(engine, put_back.release_stranded) == 1
    assert row_of(engine, two)["waiting_for"] is None


@pytest.mark.parametrize(
    ("end_it", "given"),
    [
        pytest.param(refusals.skip, (1, "expired"), id="skip"),
        pytest.param(refusals.cancel, ("cancelled",), id="cancel"),
    ],
)
def test_what_waits_for_one_that_never_starts_is_released_with_its_end(
    engine: sa.Engine, end_it: Any, given: tuple[Any, ...]
) -> None:
    first, second, third = made(engine, 3, catch_up="all")
    assert claimed(engine, second) is NotClaimed.WAITS
    assert claimed(engine, third) is NotClaimed.WAITS
    update_operation(engine, third, waiting_for=first)

    ended = act(engine, end_it, first, *given)

    assert [message.id for message in ended.released] == [second]
    assert row_of(engine, second)["waiting_for"] is None
    assert row_of(engine, third)["waiting_for"] == second


def take_back(engine: sa.Engine) -> list[tuple[UUID, str]]:
    return act(engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS)


def test_a_lost_lease_writes_nothing_more(engine: sa.Engine) -> None:
    operation = make_operation(engine, make_action(engine), NOON)
    claimed(engine, operation)
    update_operation(engine, operation, heartbeat_at=NOON - timedelta(days=365))

    assert take_back(engine) == [(operation, "pending")]
    with pytest.raises(LeaseLost):
        _end(engine, operation)
    with pytest.raises(LeaseLost):
        act(engine, beat, operation, 1)
    row = row_of(engine, operation)
    assert (row["state"], row["attempt"], row["losses"], row["failures"]) == ("pending", 2, 1, 0)


def test_a_later_attempt_keeps_the_first_start(engine: sa.Engine) -> None:
    operation = make_operation(engine, make_action(engine), NOON)
    claimed(engine, operation)
    long_ago = NOON - timedelta(days=365)
    update_operation(engine, operation, first_started_at=long_ago, heartbeat_at=long_ago)
    take_back(engine)

    assert isinstance(claimed(engine, operation, 2), Claim)
    assert row_of(engine, operation)["first_started_at"] == long_ago


def test_a_lost_operation_is_tried_three_times_and_then_fails(engine: sa.Engine) -> None:
    operation = make_operation(engine, make_action(engine), NOON)
    states = []
    for attempt in range(1, 5):
        claimed(engine, operation, attempt)
        update_operation(engine, operation, heartbeat_at=NOON - timedelta(days=365))
        states += [state for _, state in take_back(engine)]

    assert states == ["pending", "pending", "pending", "failed"]
    assert "lost" in str(row_of(engine, operation)["error"])


@pytest.mark.parametrize(
    ("ahead_s", "is_lost"),
    [
        pytest.param(0, False, id="just_now"),
        pytest.param(-35, False, id="within_the_lease"),
        pytest.param(-46, True, id="a_lease_ago"),
        pytest.param(35, False, id="of_a_clock_that_is_a_little_ahead"),
        pytest.param(90, True, id="of_a_clock_that_ran_ahead"),
    ],
)
def test_a_lease_is_taken_back_once_its_heartbeat_is_a_lease_away(
    engine: sa.Engine, ahead_s: float, is_lost: bool
) -> None:
    operation = make_operation(engine, make_action(engine), NOON)
    claimed(engine, operation)
    update_operation(engine, operation, heartbeat_at=database_now(ahead_s))

    assert take_back(engine) == ([(operation, "pending")] if is_lost else [])


@pytest.mark.parametrize(
    ("seconds", "result"),
    [
        pytest.param(45, NotClaimed.DROPPED, id="too_soon"),
        pytest.param(55.5, Claim, id="at_the_tolerance"),
        pytest.param(95, Claim, id="late"),
        pytest.param(-86_400, Claim, id="after_a_start_by_a_clock_that_ran_ahead"),
    ],
)
def test_an_interval_that_comes_too_soon_is_dropped(
    engine: sa.Engine, seconds: float, result: object
) -> None:
    when = {"every": "PT1M", "tolerance": "PT5S", "starting_at": "2027-01-04T00:00:00Z"}
    action = make_action(engine, when=when)
    one = make_operation(engine, action, NOON, 'Scheduled action "x"')
    two = make_operation(engine, action, NOON + MINUTE, 'Scheduled action "x"')
    claimed(engine, one)
    _end(engine, one)
    started = datetime.now(UTC) - timedelta(seconds=seconds)  # noqa: TID251 - the row is aged
    update_operation(engine, one, first_started_at=started)
    execute(engine, sa.update(action_state).values(last_run_at=started))
    before = last_starts(engine)

    found = claimed(engine, two)

    assert type(found) is result or found is result
    if found is NotClaimed.DROPPED:
        row = row_of(engine, two)
        assert (row["state"], row["reason"]) == ("dropped", "tolerance")
        assert last_starts(engine) == before


def last_starts(engine: sa.Engine) -> list[Any]:
    """Return when the action and each of its operations last began."""
    of_action = fetched(engine, sa.select(action_state.c.last_run_at)).all()
    of_runs = sa.select(operations.c.first_started_at).order_by(operations.c.occurrence_at)
    return [*of_action, *fetched(engine, of_runs)]


@pytest.mark.parametrize("has_ended", [True, False], ids=["ended", "running"])
def test_the_last_start_may_be_of_an_occurrence_long_ago(
    engine: sa.Engine, has_ended: bool
) -> None:
    when = {"every": "PT1M", "tolerance": "PT20S", "starting_at": "2027-01-04T00:00:00Z"}
    action = make_action(engine, when=when, policy={"overlap": "allow"})
    name = 'Scheduled action "x"'
    old, *newer, last = (make_operation(engine, action, NOON + n * MINUTE, name) for n in range(23))
    hour_ago = datetime.now(UTC) - timedelta(hours=1)  # noqa: TID251 - the rows are aged
    for id in newer:
        update_operation(engine, id, first_started_at=hour_ago)
    assert isinstance(claimed(engine, old), Claim)
    if has_ended:
        _end(engine, old)

    assert claimed(engine, last) is NotClaimed.DROPPED


def test_more_than_a_statement_has_parameters_are_skipped_at_once(engine: sa.Engine) -> None:
    action = make_action(engine)
    most = 32_766 if engine.dialect.name == "sqlite" else 65_535
    at = instant(NOON)
    its = (1, str(action.uid), 1)
    rest = ("pending", 'Scheduled action "x"', "quick", "a task", at, at)
    bulk_insert(
        engine,
        "operations",
        "id small_app_id action_uid revision occurrence_at state triggerer queue task recorded_at "
        "not_before",
        (
            (str(UUID(int=number)), *its, instant(NOON + number * MINUTE / 60), *rest)
            for number in range(most + 100)
        ),
    )

    with engine.begin() as connection:
        assert keep_newest(connection, action.uid, 1, Causes(connection)) == most + 98


def test_catch_up_all_runs_in_order_whatever_message_comes_first(engine: sa.Engine) -> None:
    one, two, three = made(engine, 3, catch_up="all")

    assert claimed(engine, three) is NotClaimed.WAITS
    assert claimed(engine, two) is NotClaimed.WAITS
    assert isinstance(claimed(engine, one), Claim)
    assert _end(engine, one) == [two]
    assert isinstance(claimed(engine, two), Claim)
    assert _end(engine, two) == [three]


def test_an_older_operation_does_not_cancel_the_newer_one(engine: sa.Engine) -> None:
    old, new = made(engine, 2, overlap="replace")
    claimed(engine, new)

    claimed(engine, old)

    assert row_of(engine, new)["cancel_requested_at"] is None


def test_a_replaced_operation_is_not_put_back(engine: sa.Engine) -> None:
    old, new = made(engine, 2, overlap="replace")
    claimed(engine, old)
    claimed(engine, new)

    released = finish(engine, old, lease.GIVEN_BACK).released

    row = row_of(engine, old)
    assert (row["state"], row["reason"]) == ("cancelled", f"replaced by {new}")
    assert [one.id for one in released] == [new]


def test_only_the_living_are_released(engine: sa.Engine) -> None:
    one, two, three = made(engine, 3, overlap="queue", max_waiting=2)
    for operation in (one, two, three):
        claimed(engine, operation)
    update_operation(engine, two, state="cancelled", reason="why")

    assert _end(engine, one) == [three]
    assert row_of(engine, two)["reason"] == "why"


def test_the_tests_databases_refuse_an_illegal_move(engine: sa.Engine) -> None:
    operation = make_operation(engine, make_action(engine), NOON)
    claimed(engine, operation)
    _end(engine, operation)

    with pytest.raises(sa.exc.DatabaseError, match="illegal move"):
        update_operation(engine, operation, state="running")


def test_an_older_success_that_comes_late_takes_no_instant_back(engine: sa.Engine) -> None:
    older, newer = made(engine, 2, overlap="allow")
    for id in (older, newer):
        claimed(engine, id)
    update_operation(engine, older, first_started_at=database_now(-300.0))
    _end(engine, newer)
    before = _known(engine)

    _end(engine, older)

    assert _known(engine) == {**before, "run_number": 2}
    assert before["run_number"] == 1


def test_a_success_of_a_clock_that_ran_ahead_is_replaced(engine: sa.Engine) -> None:
    one, two = made(engine, 2)
    claimed(engine, one)
    update_operation(engine, one, first_started_at=database_now(7200.0))
    _end(engine, one)

    claimed(engine, two)
    _end(engine, two)

    started_at = row_of(engine, two)["first_started_at"]
    known = _known(engine)
    assert (known["last_run_at"], known["last_success_at"]) == (started_at, started_at)


def _known(engine: sa.Engine) -> dict[str, Any]:
    row = fetched(engine, sa.select(action_state)).mappings().one()
    return {name: row[name] for name in ("last_run_at", "last_success_at", "run_number")}
