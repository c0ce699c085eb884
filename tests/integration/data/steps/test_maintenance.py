"""maintenance, on both stores."""

import os
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from data.settings import Retention
from data.store import deliveries
from data.store.deliveries import Delivery
from data.store.tables import deliveries as deliveries_table
from data.store.tables import snapshots
from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.action.plan import Plan
from models.document import NoParameters
from models.sql import database_now, read_clock
from models.store import tenants
from models.store.key_values import EVENTS_DECIDED, set_value
from models.tables import (
    action_cursor,
    action_state,
    actions,
    attempts,
    backfills,
    events,
    installation,
    missed_spans,
    notices,
    operation_logs,
    operations,
    ticks,
    workers,
)
from tasks.steps import maintenance
from tasks.steps.maintenance import work as maintaining
from tests.factories import make_rule, spoil
from tests.integration.data.steps.conftest import OCCURRENCE, Work
from tests.transactions import act, execute, fetched

DAY_S = 86_400.0


def ran(work: Work, keep: int = 1, **other: object) -> StepResult:
    """Run maintenance that keeps 90 days of history and `keep` snapshots."""
    return maintenance.run(
        work.context(NoParameters(), retention=Retention(snapshots=keep), **other)  # type: ignore[arg-type]
    )


def old_operation(work: Work, state: str = "success", days: float = 91) -> UUID:
    """Record an ended operation with its dependent rows."""
    at = database_now(-days * DAY_S)
    id_ = work.operation(state=state, recorded_at=at, finished_at=at)
    add(work, attempts, operation_id=id_, attempt=1, worker="w", started_at=at, state="success")
    add(work, operation_logs, operation_id=id_, lines=[])
    delivery = Delivery(id_, "send_email", "ann")
    act(work.engine, deliveries.reserve, delivery, "ann@example.com", "<i>")
    return id_


def add(work: Work, table: sa.Table, **values: object) -> None:
    execute(work.engine, sa.insert(table).values(**values))


def ids(work: Work, column: sa.ColumnElement[object]) -> set[object]:
    return set(fetched(work.engine, sa.select(column)).scalars())


def test_old_operations_go_with_all_that_hangs_on_them(work: Work) -> None:
    old = old_operation(work)
    young = old_operation(work, days=89)

    result = ran(work)

    assert result.message == "pruned 1 run"
    assert old not in ids(work, operations.c.id)
    assert young in ids(work, operations.c.id)
    for table in (attempts, operation_logs, deliveries_table):
        assert ids(work, table.c.operation_id) == {young}


def test_more_than_one_batch_goes(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintaining, "BATCH", 2)
    for _operation in range(5):
        old_operation(work)

    assert ran(work).details["pruned"]["operations"] == 5


def test_what_has_not_ended_or_could_be_decided_again_stays(work: Work) -> None:
    old = old_operation(work)
    until = {"watermark": OCCURRENCE.replace(year=2025), "effective_from": OCCURRENCE}
    add(work, action_cursor, action_uid=work.action_of(old), **until)
    waiting = work.operation(state="pending", recorded_at=database_now(-400 * DAY_S))

    ran(work)

    assert {old, waiting} < ids(work, operations.c.id)


def about_ann(work: Work, event_days: float, *, decided_days: float = 0, **columns: object) -> UUID:
    """Record an old operation about a user, of an action that looks back for 80 days."""
    at = database_now(-200 * DAY_S)
    id_ = work.operation(
        state="success", recorded_at=at, finished_at=at, subject="ann",
        occurrence_at=database_now(-event_days * DAY_S),
    )  # fmt: skip
    values = {"event": "order.paid", "look_back_s": 80 * DAY_S, **columns}
    uid = work.action_of(id_)
    with work.engine.begin() as connection:
        spoil(connection, actions.c.uid == uid, **values)
        decided = read_clock(connection) - timedelta(days=decided_days)
        set_value(connection, EVENTS_DECIDED, decided.isoformat())
    return id_


@pytest.mark.parametrize(
    ("case", "stays"),
    [
        pytest.param({"event_days": 79}, True, id="within_look_back"),
        pytest.param({"event_days": 80.02}, True, id="an_hour_to_spare"),
        pytest.param({"event_days": 80.1}, False, id="beyond"),
        pytest.param({"event_days": 85, "decided_days": 7}, True, id="daemon_was_down"),
        pytest.param({"event_days": 79, "active": False}, False, id="paused"),
        pytest.param({"event_days": 79, "event": None}, False, id="on_the_clock_now"),
    ],
)
def test_what_an_event_made_due_stays_while_a_tick_could_see_it(
    work: Work, case: dict[str, Any], stays: bool
) -> None:
    old = about_ann(work, **case)

    ran(work)

    assert (old in ids(work, operations.c.id)) is stays


def test_where_events_were_never_decided_their_operations_stay(work: Work) -> None:
    old = about_ann(work, 300)
    execute(work.engine, sa.delete(installation))

    ran(work)

    assert old in ids(work, operations.c.id)


def test_old_events_go_once_no_action_waits_for_them(work: Work) -> None:
    """History stays for 90 days; an action waits for 30 days, which may be 31."""
    its = {"small_app_id": work.app.id, "event": "order.paid", "subject": "ann"}
    for days in (89, 121, 123):
        add(work, events, **its, id=str(days), occurred_at=database_now(-days * DAY_S))
    rule = make_rule(after="order.paid", delay="P31D")
    plan = Plan(True, (rule,), is_heavy=False, queue="quick").to_json()
    about_ann(work, 1, plan=plan)

    ran(work)
    while_it_waits = ids(work, events.c.id)
    execute(work.engine, sa.update(actions).values(event=None))
    ran(work)

    assert while_it_waits == {"89", "121"}
    assert ids(work, events.c.id) == {"89"}


def test_old_ticks_missed_spans_and_workers_go(work: Work) -> None:
    work.become_default()
    its = {"action_uid": work.action_of(work.operation()), "revision": 1, "count": 1}
    for days in (1, 200):
        make_tick(work, days)
        at = dict.fromkeys(("first_at", "last_at", "recorded_at"), database_now(-days * DAY_S))
        add(work, missed_spans, **its, **at, reason="late")
    for name, days in (("gone", 8), ("young", 6)):
        seen = dict.fromkeys(("started_at", "seen_at"), database_now(-days * DAY_S))
        add(work, workers, name=name, queues="quick", pid=1, **seen)

    assert ran(work).message == "pruned 1 missed span, 1 tick, 1 worker"
    assert ids(work, workers.c.name) == {"young"}


def test_a_small_app_prunes_nothing_of_the_installation(work: Work) -> None:
    make_tick(work)

    assert ran(work).message == "nothing to prune"
    assert len(ids(work, ticks.c.id)) == 1


@pytest.mark.parametrize("is_deleted", [False, True])
def test_the_history_of_a_deleted_small_app_is_pruned_by_the_default_one(
    work: Work, is_deleted: bool
) -> None:
    old = old_operation(work)
    if is_deleted:
        with work.engine.begin() as connection:
            connection.execute(sa.update(actions).values(deleted_at=database_now()))
            tenants.mark_deleted(connection, work.app.id)
    work.become_default()

    ran(work)

    assert (old in ids(work, operations.c.id)) != is_deleted
    assert (old in ids(work, deliveries_table.c.operation_id)) != is_deleted


@pytest.mark.parametrize(
    ("days", "state", "stays"),
    [
        pytest.param(91, "success", False, id="long_deleted"),
        pytest.param(89, "success", True, id="deleted_lately"),
        pytest.param(None, "success", True, id="there"),
        pytest.param(91, "running", True, id="still_runs"),
    ],
)
def test_what_an_action_knew_goes_once_it_is_long_deleted(
    work: Work, days: float | None, state: str, stays: bool
) -> None:
    id_ = work.operation(state=state, recorded_at=database_now())
    for subject in ("", "ann"):
        add(work, action_state, action_uid=work.action_of(id_), subject=subject, run_number=7)
    at = None if days is None else database_now(-days * DAY_S)
    execute(work.engine, sa.update(actions).values(deleted_at=at))

    ran(work)

    assert ids(work, action_state.c.subject) == ({"", "ann"} if stays else set())


def make_backfill(work: Work, days: float, **columns: object) -> UUID:
    """Store a backfill, of a year around the fixture's occurrence, that ended so long ago."""
    id, uid = uuid4(), next(iter(ids(work, actions.c.uid)))
    at = database_now(-days * DAY_S)
    values = {
        "id": id, "small_app_id": work.app.id, "action_uid": uid, "mode": "all", "state": "done",
        "since": OCCURRENCE - timedelta(days=365), "until": OCCURRENCE + timedelta(days=365),
        "actor": "ann", "not_before": at, "requested_at": at,
        "finished_at": at,
    }  # fmt: skip
    add(work, backfills, **{**values, **columns})
    return id


def test_old_backfills_and_notices_go_once_they_have_ended(work: Work) -> None:
    work.operation()
    make_backfill(work, 91)
    kept = {make_backfill(work, 89), make_backfill(work, 91, state="active", finished_at=None)}
    now = dict.fromkeys(("not_before", "created_at"), database_now())
    its = {"small_app_id": work.app.id, "kind": "run_ended", "target": {}, "payload": {}, **now}
    for state, days in (("done", 91), ("failed", 91), ("done", 89), ("owed", None)):
        at = None if days is None else database_now(-days * DAY_S)
        add(work, notices, **its, id=uuid4(), state=state, finished_at=at)

    result = ran(work)

    assert result.message == "pruned 1 backfill, 2 notices"
    assert ids(work, backfills.c.id) == kept
    assert len(ids(work, notices.c.id)) == 2


def test_what_lies_in_the_range_of_an_active_backfill_stays(work: Work) -> None:
    old = old_operation(work)
    backfill = make_backfill(work, 1, state="active", finished_at=None)

    ran(work)
    stayed = ids(work, operations.c.id)
    over = sa.update(backfills).where(backfills.c.id == backfill)
    execute(work.engine, over.values(state="done", finished_at=database_now()))
    ran(work)

    assert old in stayed
    assert old not in ids(work, operations.c.id)


def test_operations_that_could_be_decided_again_are_not_pruned_and_it_says_what_to_do(
    work: Work,
) -> None:
    work.become_default()
    old = old_operation(work)
    make_tick(work)
    long = {"name": "yearly", "look_back_s": 100 * int(DAY_S)}
    execute(work.engine, sa.update(actions).values(**long))

    with pytest.raises(StepFailed) as failure:
        ran(work)

    assert failure.value.permanent
    assert str(failure.value) == (
        "runs are not pruned: look_back P100D of 'yearly' is longer than runs are kept;"
        ' write "P90D" or less, or set SCHED_RETENTION_OPERATIONS_DAYS to 100 or more'
    )
    assert old in ids(work, operations.c.id)
    assert ids(work, ticks.c.id) == set()


def make_tick(work: Work, days: float = 200) -> None:
    at = database_now(-days * DAY_S)
    add(work, ticks, daemon="d", now=at, finished_at=at, duration_ms=1, report={})


@pytest.fixture
def refreshed(work: Work) -> Work:
    """Domain `a` with six snapshots: the second is in production, the last in staging."""
    for number in range(6):
        work.imported(a=f"id\n{number}\n")
        if number == 1:
            work.publish(data=True)
    return work


def test_snapshots_go_but_never_those_that_are_shown(refreshed: Work) -> None:
    result = ran(refreshed, keep=1)

    domain = refreshed.domains()["a"]
    assert domain.staging is not None
    assert domain.production is not None
    assert result.details["pruned"]["snapshots"] == 3
    assert result.details["pruned"]["files"] == 3
    assert len(refreshed.files()) == 3
    assert {domain.staging.id, domain.production.id} < ids(refreshed, snapshots.c.id)
    assert refreshed.settings.home / domain.production.path in refreshed.files()


def test_snapshots_of_a_removed_domain_go_but_the_newest(refreshed: Work) -> None:
    refreshed.apply(domains={})

    ran(refreshed, keep=1)

    assert len(refreshed.files()) == 1


def test_old_files_without_a_row_are_removed(refreshed: Work) -> None:
    folder = refreshed.settings.home / "snapshots/shop/a"
    for name in ("old.parquet.part", "old.parquet", "young.parquet.part"):
        (folder / name).write_text("{}")
    for name in ("old.parquet.part", "old.parquet"):
        os.utime(folder / name, (0, 0))

    result = ran(refreshed, keep=100)

    assert result.details["pruned"]["files"] == 2
    assert (folder / "young.parquet.part").exists()


def test_a_stop_ends_between_batches(work: Work) -> None:
    old_operation(work)

    result = ran(work, should_stop=lambda: True)

    assert result.outcome is StepOutcome.PARTIAL
    assert result.message == "nothing to prune; stopped before the end"
