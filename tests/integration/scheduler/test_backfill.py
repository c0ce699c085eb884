"""A backfill runs each wanted occurrence once, in order, whatever process dies."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from broker.sending import send_ended
from models.errors import Refused
from models.fingerprint import operation_id
from models.operation import ENDED, OperationState
from models.sql import database_now
from models.store.operations import backfills
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from models.store.scope import WHOLE_INSTALLATION
from models.tables import backfills as backfills_table
from scheduler.changes import Change, change, editing
from scheduler.occurrence import next_occurrences
from scheduler.on_demand import backfill, backfill_range
from scheduler.on_demand.backfill_range import BackfillRequest
from scheduler.on_demand.restart import retry
from tasks import backfill as filling
from tests.factories import (
    author,
    make_action,
    make_document,
    make_operation,
    row_of,
    rows_of,
    spans_of,
)
from tests.servers import Broker
from tests.ticks import HOUR, MINUTE, SECOND, run_tick
from tests.transactions import act, claim_as, clock_of, execute, finish
from tests.virtual_clock import VirtualClock

KEPT = timedelta(days=90)


# By the database's clock it is ten minutes past noon.
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
SEVEN = NOON - 5 * HOUR
LAST_DAY = NOON - 30 * HOUR


@pytest.fixture(autouse=True)
def _no_hour_ends(engine: sa.Engine) -> None:
    VirtualClock(engine, NOON + 10 * MINUTE)


def make_hourly(engine: sa.Engine, **changes: Any) -> Change:
    return make_action(engine, when={"cron_rule": "0 * * * *", "timezone": "UTC"}, **changes)


def wanted(action: Change, first: datetime, last: datetime, **how: Any) -> BackfillRequest:
    return BackfillRequest(action.uid, first, last, **how)


def start(engine: sa.Engine, asked: BackfillRequest) -> UUID:
    return backfill.start(engine, asked, "ann", KEPT)[0]


def fill(engine: sa.Engine, asked: BackfillRequest) -> dict[str, Any]:
    """Start a backfill and let a worker record it; return its row."""
    id = start(engine, asked)
    assert filling.process(engine, id) == "done"
    return backfill_of(engine, id)


def backfill_of(engine: sa.Engine, id: UUID) -> dict[str, Any]:
    return act(engine, backfills.get, id, WHOLE_INSTALLATION)


def counts_of(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["recorded"], row["repeated"], row["passed_over"]


def take_messages(engine: sa.Engine, broker: Broker) -> list[Claim]:
    """Let a worker take all messages; return what starts: one at most."""
    messages = broker.messages("quick")
    with broker.client() as client:
        client.delete("minutebook.quick")
    found = [claim_as(engine, UUID(id), attempt, "tests") for id, attempt in messages]
    started = [one for one in found if isinstance(one, Claim)]
    assert len(started) <= 1
    return started


def finish_all(engine: sa.Engine, running: list[Claim]) -> list[datetime]:
    """End what runs, and send what waited for it, as a worker does; return the occurrences."""
    for one in running:
        ended = finish(engine, one.id, Outcome(OperationState.SUCCESS), attempt=one.attempt)
        send_ended(engine, ended)
    return [one.occurrence_at for one in running]


def run_all(engine: sa.Engine, broker: Broker) -> list[datetime]:
    """Take message after message like a worker; return the occurrences in the order they ran."""
    ran: list[datetime] = []
    while running := take_messages(engine, broker):
        ran += finish_all(engine, running)
    return ran


def test_a_range_is_recorded_by_ids_and_runs_in_order(engine: sa.Engine, broker: Broker) -> None:
    action, first = make_hourly(engine), SEVEN
    expected = [first + n * HOUR for n in range(4)]

    row = fill(engine, wanted(action, first, expected[-1]))

    rows = rows_of(engine, action)
    assert [one["id"] for one in rows] == [operation_id(action.uid, at) for at in expected]
    assert {one["triggerer"] for one in rows} == {f"Backfill {str(row['id'])[:8]} by ann"}
    assert (row["state"], counts_of(row)) == ("done", (4, 0, 0))
    assert run_all(engine, broker) == expected
    assert {one["state"] for one in rows_of(engine, action)} == {"success"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"active": False}, "action resume"),
        ({"when": {"on": "instance.user.created"}}, "not by the clock"),
    ],
)
def test_an_action_that_cannot_be_filled_is_refused(
    engine: sa.Engine, changes: dict[str, Any], told: str
) -> None:
    action, first = make_action(engine, **changes), SEVEN

    with pytest.raises(Refused, match=told):
        start(engine, wanted(action, first, first + HOUR))
    with pytest.raises(Refused, match=told):
        backfill.rehearse(engine, wanted(action, first, first + HOUR), KEPT)


def test_a_rehearsal_says_all_and_stores_nothing(engine: sa.Engine, broker: Broker) -> None:
    action, first = make_hourly(engine), SEVEN
    make_operation(engine, action, first + HOUR)

    found = backfill.rehearse(engine, wanted(action, first, first + 4 * HOUR), KEPT)

    assert found == {
        "recorded": 4, "repeated": 0, "passed_over": 1,
        "first": first, "last": first + 4 * HOUR,
    }  # fmt: skip
    assert len(rows_of(engine, action)) == 1
    assert broker.messages("default") == []


def test_a_worker_is_asked_at_once_and_by_the_sweep_when_nobody_comes(
    engine: sa.Engine, broker: Broker
) -> None:
    action, first = make_hourly(engine), SEVEN
    id = start(engine, wanted(action, first, first + HOUR))
    asked = broker.messages("default")
    now = clock_of(engine)

    run_tick(engine, now)
    still = broker.messages("default")
    execute(engine, sa.update(backfills_table).values(not_before=database_now(-1.0)))
    run_tick(engine, now)

    assert asked == still == [(str(id), 1)]
    assert broker.messages("default") == [(str(id), 1)] * 2


def test_an_unexpected_error_ends_the_backfill_with_nothing_recorded(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    action, first = make_hourly(engine), SEVEN
    id = start(engine, wanted(action, first, first + HOUR))

    def die(_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(backfill_range.Share, "counts", property(die))
    assert filling.process(engine, id) == "failed"

    row = backfill_of(engine, id)
    assert (row["state"], row["error"]) == ("failed", "RuntimeError: a bug")
    assert rows_of(engine, action) == []


def test_two_workers_with_one_message_record_each_once(engine: sa.Engine, broker: Broker) -> None:
    action, first = make_hourly(engine), LAST_DAY
    id = start(engine, wanted(action, first, first + 24 * HOUR))

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda _: filling.process(engine, id), range(2)))

    assert sorted(outcomes) == ["done", "not active"]
    assert counts_of(backfill_of(engine, id)) == (25, 0, 0)
    assert len(set(broker.messages("quick"))) == len(broker.messages("quick")) == 25


def test_an_action_that_is_paused_meanwhile_ends_its_backfill(engine: sa.Engine) -> None:
    action, first = make_hourly(engine), SEVEN
    id = start(engine, wanted(action, first, first + HOUR))
    editing.set_active(engine, action.uid, active=False, author=author())

    assert filling.process(engine, id) == "failed"

    row = backfill_of(engine, id)
    assert row["state"] == "failed"
    assert "is paused" in row["error"]


def test_after_an_edit_a_backfill_records_the_current_revision(engine: sa.Engine) -> None:
    action, first = make_hourly(engine), SEVEN
    id = start(engine, wanted(action, first, first + 2 * HOUR))

    when = {"cron_rule": "30 * * * *", "timezone": "UTC"}
    change.apply_all(engine, [make_document(when=when)], author())
    filling.process(engine, id)

    rows = [(row["occurrence_at"], row["revision"]) for row in rows_of(engine, action)]
    assert rows == [(first + 30 * MINUTE, 2), (first + HOUR + 30 * MINUTE, 2)]


def test_a_backfill_that_no_worker_recorded_is_cancelled(engine: sa.Engine) -> None:
    action, first = make_hourly(engine), SEVEN
    id = start(engine, wanted(action, first, first + HOUR))

    assert backfill.cancel(engine, action.uid, "ben") == ([id], 0)

    assert filling.process(engine, id) == "not active"
    assert backfill_of(engine, id)["state"] == "cancelled"
    assert rows_of(engine, action) == []


def test_a_cancelled_backfill_cancels_what_has_not_started(engine: sa.Engine) -> None:
    action, first = make_hourly(engine), SEVEN
    asked = wanted(action, first, first + 2 * HOUR)
    row = fill(engine, asked)
    ids = [one["id"] for one in rows_of(engine, action)]
    claim_as(engine, ids[0], 1, "tests")

    stopped, count = backfill.cancel(engine, action.uid, "ben")

    states = [one["state"] for one in rows_of(engine, action)]
    assert (stopped, count, states) == ([row["id"]], 2, ["running", "cancelled", "cancelled"])
    assert backfill_of(engine, row["id"])["state"] == "cancelled"
    with pytest.raises(Refused, match="no backfill with runs that have not started"):
        backfill.cancel(engine, action.uid, "ben")
    assert counts_of(fill(engine, asked)) == (0, 2, 1)


def test_a_retry_by_hand_stays_in_its_backfill_and_goes_on_without_it(engine: sa.Engine) -> None:
    action, first = make_hourly(engine), SEVEN
    row = fill(engine, wanted(action, first, first + HOUR))
    failed = rows_of(engine, action)[0]["id"]
    claim_as(engine, failed, 1, "tests")
    finish(engine, failed, Outcome(OperationState.FAILED))
    retry(engine, failed, WHOLE_INSTALLATION, "ann")

    backfill.cancel(engine, action.uid, "ben")

    state = row_of(engine, failed)["state"]
    assert act(engine, backfills.states_of, row) == {"cancelled": 1, state: 1}
    assert state in {"pending", "queued"}


# What else happens to the action meanwhile.


def missed_of(engine: sa.Engine, action: Change) -> dict[datetime, str]:
    """Return each occurrence's outcome: the state of its row, or `span`."""
    outcomes = {row["occurrence_at"]: str(row["state"]) for row in rows_of(engine, action)}
    for span, _ in spans_of(engine):
        inside = next_occurrences(action.plan, action.uid, span["first_at"] - SECOND, 10_000)
        left = [at for at in inside if at <= span["last_at"] and at not in outcomes]
        outcomes |= dict.fromkeys(left, "span")
    return outcomes


@pytest.fixture
def slept(engine: sa.Engine) -> Change:
    """An hourly action whose daemon slept from LAST_DAY on."""
    action = make_hourly(engine, since=LAST_DAY - MINUTE)
    run_tick(engine, NOON + 10 * MINUTE)
    return action


@pytest.mark.parametrize(
    ("start_at", "end_at"),
    [
        pytest.param(8, 12, id="its_middle"),
        pytest.param(15, 35, id="its_end_and_rows"),
        pytest.param(-5, 0, id="before_and_its_first"),
    ],
)
def test_each_missed_occurrence_keeps_one_outcome(
    engine: sa.Engine, slept: Change, start_at: int, end_at: int
) -> None:
    before = Counter(missed_of(engine, slept).values())

    last = min(LAST_DAY + end_at * HOUR, NOON)
    fill(engine, wanted(slept, LAST_DAY + start_at * HOUR, last))

    after = Counter(missed_of(engine, slept).values())
    asked = sum(LAST_DAY + n * HOUR <= last for n in range(start_at, end_at + 1))
    assert before == {"span": 21, "missed": 10}
    assert after["queued"] == asked
    assert sum(after.values()) == 31 + max(0, -start_at)


def test_a_span_of_another_rule_loses_what_it_counted(engine: sa.Engine, slept: Change) -> None:
    when = {"cron_rule": "*/30 * * * *", "timezone": "UTC"}
    change.apply_all(engine, [make_document(when=when)], author())

    fill(engine, wanted(slept, LAST_DAY, LAST_DAY + 2 * HOUR))

    assert len(rows_of(engine, slept)) == 5 + 10
    assert Counter(missed_of(engine, slept).values())["span"] == 18


def test_what_was_filled_before_the_daemon_came_is_not_missed(engine: sa.Engine) -> None:
    action = make_hourly(engine, since=LAST_DAY - MINUTE)
    fill(engine, wanted(action, LAST_DAY, LAST_DAY + 4 * HOUR))

    run_tick(engine, NOON + 10 * MINUTE)

    assert Counter(missed_of(engine, action).values()) == {"queued": 5, "span": 16, "missed": 10}


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_the_schedule_and_a_backfill_take_turns_and_each_runs_in_order(
    engine: sa.Engine, broker: Broker, overlap: str, catch_up: str
) -> None:
    """The action takes as long as its interval: one is always running when the next comes."""
    now = NOON + 10 * MINUTE
    policy = {"overlap": overlap, "catch_up": catch_up}
    action = make_action(engine, policy=policy, since=now)
    old = now - HOUR
    fill(engine, wanted(action, old, old + 3 * MINUTE))

    order: list[datetime] = []
    running: list[Claim] = []
    for minute in range(1, 9):
        run_tick(engine, now + minute * MINUTE)
        order += finish_all(engine, [*running, *take_messages(engine, broker)])
        running = take_messages(engine, broker)
    order += [*finish_all(engine, running), *run_all(engine, broker)]

    backfilled = [at for at in order if at < now]
    scheduled = [at for at in order if at > now]
    assert backfilled == [old + n * MINUTE for n in range(4)]
    assert len(scheduled) >= 3
    assert scheduled == sorted(scheduled)
    # The schedule had its first turn long before the backfill's last.
    assert order.index(scheduled[0]) < order.index(backfilled[1])
    states = {row["occurrence_at"]: row["state"] for row in rows_of(engine, action)}
    assert {states[at] for at in backfilled} == {"success"}
    assert set(states.values()) <= ENDED


def test_tolerance_drops_nothing_of_a_backfill(engine: sa.Engine, broker: Broker) -> None:
    when = {"every": "PT1H", "starting_at": SEVEN.isoformat(), "tolerance": "PT10M"}

    fill(engine, wanted(make_action(engine, when=when), SEVEN, SEVEN + 3 * HOUR))

    assert len(run_all(engine, broker)) == 4
