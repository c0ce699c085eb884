"""An interval from the end: due after the last operation ended, however it ended."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store.actions import find as found
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import put_back, refusals
from models.store.operations.end import EndResult, Outcome
from models.store.operations.jobs import next_run
from models.store.scope import Scope
from models.store.tenants.closing import closing_rows, next_open
from models.tables import action_cursor, operations
from runtime.database import reading
from scheduler.changes import Change, editing
from scheduler.forecast import coming
from scheduler.on_demand.manual import run_now
from services.actions import due_next
from tests.attempts import end
from tests.factories import (
    author,
    claimed,
    cursor_of,
    make_action,
    make_document,
    make_operation,
    rows_of,
    update_operation,
)
from tests.ticks import DAY, LEASE, MINUTE, SECOND, run_tick
from tests.transactions import act, clock_of, execute, finish, why
from tests.virtual_clock import VirtualClock

EVERY = timedelta(minutes=10)
WHEN = {"every": "PT10M", "from": "end"}
S = OperationState


@pytest.fixture
def now(engine: sa.Engine) -> datetime:
    """A full second of the database's clock: ends are written by that."""
    return clock_of(engine).replace(microsecond=0)


def make(engine: sa.Engine, now: datetime, **changes: Any) -> Change:
    return make_action(engine, **{"when": WHEN, "since": now - MINUTE, **changes})


def begun(engine: sa.Engine, now: datetime, **changes: Any) -> tuple[Change, UUID]:
    action = make(engine, now, **changes)
    run_tick(engine, now)
    (row,) = rows_of(engine, action)
    return action, row["id"]


def lose(connection: sa.Connection, id: UUID) -> object:
    its_own = operations.c.id == id
    aged = {"heartbeat_at": datetime(2026, 1, 1, tzinfo=UTC), "losses": 9}
    connection.execute(sa.update(operations).where(its_own).values(**aged))
    return put_back.take_back_lost(connection, LEASE, 10, NO_ALERTS)


def end_as(state: OperationState) -> partial[EndResult]:
    return partial(end, attempt=1, ending=Outcome(state), alerts=NO_ALERTS)


@pytest.mark.parametrize(
    ("is_started", "ends"),
    [
        *(pytest.param(True, end_as(one), id=one) for one in (S.SUCCESS, S.PARTIAL, S.FAILED)),
        pytest.param(True, end_as(S.CANCELLED), id="cancelled"),
        pytest.param(True, lose, id="lost"),
        pytest.param(False, partial(refusals.skip, attempt=1, reason="a"), id="skipped"),
        pytest.param(
            False, partial(refusals.skip, attempt=1, reason="a", state=S.DROPPED), id="dropped"
        ),
        pytest.param(False, partial(refusals.cancel, reason="by a person"), id="called_off"),
    ],
)
def test_the_next_is_due_after_the_end_however_it_ended(
    engine: sa.Engine, now: datetime, is_started: bool, ends: Callable[..., object]
) -> None:
    action, first = begun(engine, now)
    if is_started:
        claimed(engine, first)
    act(engine, ends, first)
    update_operation(engine, first, finished_at=now + 3 * MINUTE - SECOND / 3)

    run_tick(engine, now + EVERY)

    due_at = now + 3 * MINUTE + EVERY
    assert cursor_of(engine, action)["next_occurrence_at"] == due_at
    run_tick(engine, due_at - SECOND)
    assert len(rows_of(engine, action)) == 1
    run_tick(engine, due_at)
    assert due_at in {row["occurrence_at"] for row in rows_of(engine, action)}


def test_while_an_operation_is_unfinished_nothing_is_due(engine: sa.Engine, now: datetime) -> None:
    action, first = begun(engine, now)
    claimed(engine, first)
    retry = Outcome(S.PENDING, "no printer", is_failure=True)

    reports = [run_tick(engine, now + n * EVERY) for n in (1, 2)]
    finish(engine, first, retry)
    reports.append(run_tick(engine, now + 3 * EVERY))

    assert [one.recorded for one in reports] == [0, 0, 0]
    assert cursor_of(engine, action)["next_occurrence_at"] == now + 4 * EVERY
    assert [row["id"] for row in rows_of(engine, action)] == [first]


def test_a_cursor_comes_back_each_interval_and_day(engine: sa.Engine, now: datetime) -> None:
    action, _ = begun(engine, now, when={"every": "P30D", "from": "end"})

    assert cursor_of(engine, action)["next_occurrence_at"] == now + DAY


def finished(engine: sa.Engine, id: UUID, at: datetime) -> None:
    update_operation(engine, id, state="skipped", finished_at=at)


def test_a_manual_run_counts_too(engine: sa.Engine, now: datetime) -> None:
    action, first = begun(engine, now)
    finished(engine, first, now + MINUTE)
    run_tick(engine, now + EVERY)
    manual, _ = run_now(engine, action.uid, "ann")

    run_tick(engine, now + MINUTE + EVERY)
    assert len(rows_of(engine, action)) == 2
    finished(engine, manual, now + 15 * MINUTE)
    run_tick(engine, now + MINUTE + 2 * EVERY)

    assert cursor_of(engine, action)["next_occurrence_at"] == now + 15 * MINUTE + EVERY


def test_a_retry_of_an_older_one_counts_while_it_runs(engine: sa.Engine, now: datetime) -> None:
    action, first = begun(engine, now)
    for n in range(12):
        finished(engine, make_operation(engine, action, now + n * MINUTE), now)
    claimed(engine, first)

    while_it_runs = run_tick(engine, now + EVERY)
    finish(engine, first, Outcome(S.SUCCESS))
    run_tick(engine, now + 2 * EVERY)

    # Its own end is not among the newest: when it was last seen to run counts.
    assert while_it_runs.recorded == 0
    assert now + 2 * EVERY in {row["occurrence_at"] for row in rows_of(engine, action)}


def test_an_edit_to_and_from_the_grid_keeps_the_last_end(engine: sa.Engine, now: datetime) -> None:
    grid = {"every": "PT10M", "starting_at": "2036-01-01T00:00:00Z"}
    action, first = begun(engine, now)
    finished(engine, first, now + 5 * MINUTE)
    documents = [make_document(when=one) for one in (grid, {**WHEN, "every": "PT20M"})]

    seen = []
    for document in documents:
        editing.replace_document(engine, action.uid, document, author())
        run_tick(engine, now + MINUTE)
        seen.append(cursor_of(engine, action)["next_occurrence_at"])

    assert seen == [datetime(2036, 1, 1, tzinfo=UTC), now + 5 * MINUTE + 2 * EVERY]


def test_retention_takes_no_end_that_counts(engine: sa.Engine, now: datetime) -> None:
    action, first = begun(engine, now, when={"every": "P200D", "from": "end"})
    finished(engine, first, now + EVERY)
    run_tick(engine, now + DAY)
    with engine.begin() as connection:
        connection.execute(sa.delete(operations).where(operations.c.id == first))
        # Such as after a new tz release.
        connection.execute(sa.update(action_cursor).values(next_occurrence_at=now))

    run_tick(engine, now + 2 * DAY)

    due_at = now + EVERY + timedelta(days=200)
    assert cursor_of(engine, action)["next_occurrence_at"] == due_at


def test_an_end_that_a_wrong_clock_wrote_does_not_count(engine: sa.Engine, now: datetime) -> None:
    _, first = begun(engine, now)
    finished(engine, first, now + 300 * DAY)

    assert run_tick(engine, now + EVERY).recorded == 1


@pytest.mark.parametrize("is_resumed", [False, True])
@pytest.mark.parametrize("jitter_each", [False, True])
def test_each_look_finds_the_same_moved_instant(
    engine: sa.Engine, now: datetime, is_resumed: bool, jitter_each: bool
) -> None:
    jitter = {"jitter": "PT20S", "jitter_each": jitter_each}
    actions = [
        make(engine, now, name=f"a{n}", when={"every": "PT1M", "from": "end", **jitter})
        for n in range(3)
    ]
    if is_resumed:
        for action in actions:
            for active in (False, True):
                editing.set_active(engine, action.uid, active=active, author=author())
    begins = max(cursor_of(engine, action)["effective_from"] for action in actions)

    for step in range(0, 30, 5):
        # Such as after a new tz release.
        execute(engine, sa.update(action_cursor).values(next_occurrence_at=begins))
        run_tick(engine, begins + step * SECOND)

    assert [len(rows_of(engine, action)) for action in actions] == [1, 1, 1]


def test_what_is_missed_counts_as_an_end(engine: sa.Engine, now: datetime) -> None:
    action, first = begun(engine, now)
    finished(engine, first, now)
    late = VirtualClock(engine, now + 5 * EVERY).now

    run_tick(engine, late)

    assert [row["state"] for row in rows_of(engine, action)] == ["skipped", "missed"]
    run_tick(engine, late + EVERY)
    assert [row["state"] for row in rows_of(engine, action)][2:] == ["queued"]


def test_what_left_no_trace_counts_as_an_end(engine: sa.Engine, now: datetime) -> None:
    action, _ = begun(engine, now)
    execute(engine, sa.delete(operations))

    run_tick(engine, now + EVERY)
    run_tick(engine, now + 2 * EVERY)

    assert [row["occurrence_at"] for row in rows_of(engine, action)] == [now + EVERY]


def test_bounds_hold(engine: sa.Engine, now: datetime) -> None:
    starts_at, ends_at = now + EVERY, now + 2 * EVERY
    policy = {"starts_at": starts_at.isoformat(), "ends_at": ends_at.isoformat()}
    action = make(engine, now, policy=policy)

    run_tick(engine, now)
    run_tick(engine, starts_at)
    (row,) = rows_of(engine, action)
    finished(engine, row["id"], starts_at + MINUTE)
    run_tick(engine, ends_at)

    assert row["occurrence_at"] == starts_at
    assert cursor_of(engine, action)["next_occurrence_at"] is None


def test_explain_and_next_say_what_is_known(engine: sa.Engine, now: datetime) -> None:
    action, first = begun(engine, now)

    def told(at: datetime) -> tuple[str, str]:
        found = why(engine, action, at)
        return found.verdict, found.text

    def following() -> list[datetime]:
        return [one.at for one in act(engine, coming, (1, action.uid), action.plan, now, 3)]

    assert told(now + DAY)[1].endswith("no other is known")
    assert following() == []
    finished(engine, first, now + MINUTE)
    due_at = now + MINUTE + EVERY
    assert told(now + DAY)[1].endswith(f" is {due_at:%Y-%m-%dT%H:%M:%SZ}")
    assert told(due_at)[0] == "not_due_yet"
    assert following() == [due_at]


def test_lists_show_what_is_counted_from_the_end(engine: sa.Engine, now: datetime) -> None:
    action, first = begun(engine, now)

    def shown() -> list[datetime | None]:
        with reading(engine) as connection:
            row = closing_rows(connection, [found(connection, 1, action.name, Scope(1))])[0]
            return [due_next(row, now), next_open(row), next_run(connection, action.uid)]

    assert shown() == [None, None, None]
    finished(engine, first, now + MINUTE)
    assert shown() == [now + MINUTE + EVERY] * 3
