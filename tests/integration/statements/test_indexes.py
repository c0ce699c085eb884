"""Each statement of tick, claim and sweep uses its index, as the planner says at 30,000 rows.

The statements are those that the real functions execute. On PostgreSQL both the plan for these
parameters and the one for all parameters are asked.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
import sqlalchemy as sa

from benchmarks.filling import analyze, bulk_insert, instant
from data.store.status import statuses_of
from models.job import id_of
from models.sql import database_now, read_clock
from models.store import actions, key_values, measures, overview
from models.store.actions import cursors, search
from models.store.actions import jobs as action_jobs
from models.store.notices import overdue
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import backfills, external_send, pages, reserve
from models.store.operations.start_checks import NotClaimed
from models.store.people import users
from models.store.scope import WHOLE_INSTALLATION, Scope
from models.store.tenants import app_overview
from models.tables import action_cursor, operations
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.changes import deletion, editing
from scheduler.on_demand import backfill
from scheduler.on_demand.backfill_range import BackfillRequest
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tasks import backfill as filling
from tests.factories import author, make_action, update_operation
from tests.integration.statements.acts import (
    ACTS,
    RULES,
    assert_indexed,
    claimed,
    ended,
    make,
    of_the_application,
)
from tests.integration.statements.conftest import ACTIONS, STALE, WAITING, Filled
from tests.integration.statements.plans import PARTIAL, Statements
from tests.ticks import MINUTE

LEASE = timedelta(hours=1)
# One in a thousand actions, as 1,000 in a million. PostgreSQL reads all cursors where a batch has
# some on nearly every page.
BATCH = 100


def test_a_tick_with_its_sweep_reads_what_is_due(filled: Filled, statements: Statements) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    sweeper._trusted_from = 0.0

    with statements.captured():
        report = tick(filled.engine, filled.now, sweeper, BATCH)

    recorded = report.recorded + report.skipped
    assert (recorded, report.lost, report.released) == (len(filled.due), STALE, WAITING)
    assert report.missed > 0
    assert report.overtaken > 0
    of_operations = ("unstarted", "waiting", "heartbeat_stale", "to_send", "overdue")
    its = (f"operations_{one}" for one in of_operations)
    assert_indexed(statements, "action_cursor_due", *its, "notices_owed")


def look_over(connection: sa.Connection, filled: Filled) -> None:
    overview.running(connection, WHOLE_INSTALLATION, 12)
    overview.coming(connection, WHOLE_INSTALLATION, 12)
    overview.errors(connection, WHOLE_INSTALLATION, filled.now - timedelta(hours=1), 12)
    overview.counts(connection, WHOLE_INSTALLATION, filled.now, MINUTE)
    overview.troubled(connection, WHOLE_INSTALLATION, filled.now)


def page(connection: sa.Connection, _filled: Filled) -> None:
    for scope in (Scope(1), WHOLE_INSTALLATION):
        search.page(connection, search.Asked(scope, search.ActionFilter(), ("a", 1)), 50)
    users.page(connection, 1, "a", 50)
    actions.find(connection, 1, "action 7", WHOLE_INSTALLATION)


def page_of_troubled(connection: sa.Connection, _filled: Filled) -> None:
    wanted = search.ActionFilter(standing=search.Standing.TROUBLED)
    search.page(connection, search.Asked(WHOLE_INSTALLATION, wanted), 50)


def longest_look_back(connection: sa.Connection, _filled: Filled) -> None:
    assert actions.longest_look_back(connection, timedelta(days=90)) is None


@pytest.mark.parametrize(
    ("look", "indexes"),
    [
        (look_over, ("operations_recent", "operations_troubled", "action_cursor_due")),
        (page, ()),
        (page_of_troubled, ("actions_quarantined", "operations_troubled")),
        (longest_look_back, ("actions_look_back",)),
    ],
)
def test_a_page_reads_what_it_shows(
    filled: Filled,
    statements: Statements,
    look: Callable[[sa.Connection, Filled], None],
    indexes: tuple[str, ...],
) -> None:
    statements.is_repeated = look in (page, longest_look_back)

    with statements.captured(), reading(filled.engine) as connection:
        look(connection, filled)

    assert_indexed(statements, *indexes)


def test_cursors_that_are_left_out_or_waited_for(filled: Filled, statements: Statements) -> None:
    left_out = set(filled.due[:3])

    with statements.captured(), filled.engine.begin() as connection:
        cursors.any_due(connection, filled.now, left_out)
        cursors.claim_due(connection, filled.now, 10, left_out=left_out, skip_locked=False)
        cursors.lock(connection, filled.due[0])

    assert_indexed(statements, "action_cursor_due")


@pytest.mark.parametrize(
    ("overlap", "outcome"), [("skip", NotClaimed.SKIPPED), ("replace", NotClaimed.WAITS)]
)
def test_a_claim_beside_a_running_one(
    filled: Filled, statements: Statements, overlap: str, outcome: NotClaimed
) -> None:
    _, first, second = make(filled, overlap, policy={"overlap": overlap})
    claimed(filled, first)

    with statements.captured():
        found = claimed(filled, second)
        released = ended(filled, first)

    assert (found, len(released)) == (outcome, int(outcome is NotClaimed.WAITS))
    assert_indexed(statements, "operations_one_running")


def test_a_claim_that_tolerance_drops(filled: Filled, statements: Statements) -> None:
    when = {"every": "PT1H", "tolerance": "PT10M"}
    _, first, second = make(filled, "tolerant", when=when)
    claimed(filled, first)
    ended(filled, first)

    with statements.captured():
        found = claimed(filled, second)

    assert found is NotClaimed.DROPPED
    assert_indexed(statements, "operations_of_action")


def test_pausing_and_deleting(filled: Filled, statements: Statements) -> None:
    action, first, _ = make(filled, "paused")

    with statements.captured():
        editing.set_active(filled.engine, action.uid, active=False, author=author())
        found = claimed(filled, first)
        deletion.delete(filled.engine, action.uid, author())

    assert found is NotClaimed.SKIPPED
    assert_indexed(statements, "operations_unstarted")


def fill_backfills(filled: Filled, active: int) -> None:
    before, then, count = instant(filled.now - 2 * MINUTE), instant(filled.now - MINUTE), 20_000
    names = "id small_app_id action_uid since until mode state actor not_before requested_at"
    states = ["active"] * active + ["done"] * count
    rows = (
        (
            *(str(uuid4()), 1, str(filled.due[n % len(filled.due)]), before, then, "all"),
            *(state, "tests", then, then),
        )
        for n, state in enumerate(states)
    )
    bulk_insert(filled.engine, "backfills", names, rows)
    analyze(filled.engine)


def test_active_backfills_are_found_among_many(filled: Filled, statements: Statements) -> None:
    fill_backfills(filled, 20)

    with statements.captured():
        tick(filled.engine, None, Sweeper(LEASE, NO_ALERTS), BATCH)
        with filled.engine.begin() as connection:
            left = backfills.reserve_sendable(connection, 100, read_clock(connection))
            backfills.of_action(connection, filled.due[0], 5)

    read = [one for reads in statements.reads().values() for one in reads]
    whole = [one for one in read if one.table == "backfills" and one.is_whole]
    assert left == []
    assert {one.index for one in whole} <= PARTIAL
    assert_indexed(statements, "backfills_to_send", "backfills_of_action")


def test_a_backfill_is_recorded_and_cancelled(filled: Filled, statements: Statements) -> None:
    action, *_ = make(filled, "filled", when={"cron_rule": "* * * * *"})
    last = filled.now - 90 * MINUTE
    asked = BackfillRequest(action.uid, last - 9 * MINUTE, last)

    with statements.captured():
        id, _ = backfill.start(filled.engine, asked, "tests", timedelta(days=90))
        told = filling.process(filled.engine, id)
        with reading(filled.engine) as connection:
            backfills.states_of(connection, backfills.get(connection, id, WHOLE_INSTALLATION))
        backfill.cancel(filled.engine, action.uid, "tests")

    assert told == "done"
    assert_indexed(statements, "operations_of_action", "operations_unstarted")


def test_a_downtime_reads_what_was_recorded_lately(filled: Filled, statements: Statements) -> None:
    with filled.engine.begin() as connection:
        down_since = filled.now - 10 * MINUTE
        key_values.set_value(connection, key_values.LAST_NOW, down_since.isoformat())

    with statements.captured():
        report = tick(filled.engine, None, Sweeper(LEASE, NO_ALERTS), BATCH)

    assert report.downtime is not None
    # SQLite may also go from action to action, by `operations_of_action`.
    is_postgresql = filled.engine.dialect.name == "postgresql"
    assert_indexed(statements, *(["operations_recent"] if is_postgresql else []))


def test_what_is_overdue_is_found_among_overtaken(filled: Filled, statements: Statements) -> None:
    _, first, second = make(filled, "overtaken")
    long_ago = filled.now - 20 * MINUTE
    update_operation(
        filled.engine, second, state="skipped", reason="overtaken", recorded_at=long_ago
    )
    update_operation(filled.engine, second, finished_at=filled.now)
    update_operation(filled.engine, first, cause="schedule")

    with statements.captured(), filled.engine.begin() as connection:
        alerted = overdue.alert(connection, AlertSettings(), 500, overtook=True)

    assert alerted == [("overtaken", "no worker listens to queue quick")]
    assert_indexed(statements, "operations_overdue", "operations_recent")


def test_what_runs_and_waits_of_an_app_is_found(filled: Filled, statements: Statements) -> None:
    statements.is_repeated = False
    app = Scope(1)

    with statements.captured(), reading(filled.engine) as connection:
        overview.running(connection, app, 12)
    assert_indexed(statements, "operations_one_running")

    with statements.captured(), reading(filled.engine) as connection:
        overview.counts(connection, app, filled.now, MINUTE)
    assert_indexed(statements, "operations_of_app", "operations_unstarted")
    reads = [one for some in statements.reads().values() for one in some]
    assert [one.index for one in reads].count("operations_one_running") > 1


def test_the_last_runs_are_read_whatever_ran_before(filled: Filled, statements: Statements) -> None:
    # As those of many users whom one event is about.
    at_once = sa.update(operations).where(operations.c.action_uid == filled.due[0])
    with filled.engine.begin() as connection:
        connection.execute(at_once.values(occurrence_at=filled.now - MINUTE))

    with statements.captured(), reading(filled.engine) as connection:
        found = overview.last_runs(connection, filled.due[:30], 5)

    assert Counter(row["action_uid"] for row in found) == dict.fromkeys(filled.due[:30], 5)
    assert_indexed(statements, "operations_of_action")


def test_an_app_counts_actions_and_finds_refreshes(filled: Filled, statements: Statements) -> None:
    at = filled.now + timedelta(hours=1)
    refresh = make_action(filled.engine, name="fresh", operations={"refresh": True})
    its_own = action_cursor.c.action_uid == refresh.uid
    with filled.engine.begin() as connection:
        connection.execute(sa.update(action_cursor).where(its_own).values(next_occurrence_at=at))

    with statements.captured(), reading(filled.engine) as connection:
        shown = app_overview.overview(connection, 1)
        now = read_clock(connection)
        status = statuses_of(connection, [1], now, timedelta(seconds=45))[1]

    assert shown["actions"]["total"] > ACTIONS
    assert status["next_run_at"] == at
    assert [one for one in statements.scans() if one.startswith("actions ")] == []
    assert "actions_counted" in statements.indexes()
    # SQLite knows nothing of an index that was empty when it was analyzed.
    if filled.engine.dialect.name == "postgresql":
        assert "actions_refreshing" in statements.indexes()


def test_actions_that_send_tasks_are_found(filled: Filled, statements: Statements) -> None:
    with statements.captured(), filled.engine.begin() as connection:
        app_overview.handed_over(connection, 1, 1)

    assert [one for one in statements.scans() if one.startswith("actions ")] == []
    if filled.engine.dialect.name == "postgresql":
        assert "actions_sending_tasks" in statements.indexes()


@pytest.mark.parametrize(
    ("scope", "index"),
    [
        pytest.param(Scope(1), "operations_of_app", id="one"),
        pytest.param(WHOLE_INSTALLATION, "operations_recent", id="all"),
    ],
)
def test_the_newest_operations_are_read_by_when_they_were_recorded(
    filled: Filled, statements: Statements, scope: Scope, index: str
) -> None:
    with statements.captured(), reading(filled.engine) as connection:
        found = pages.page(connection, pages.Wanted(scope), 20)
        pages.page(connection, pages.Wanted(scope, since=filled.now - MINUTE), 20)

    # Of all apps, the index is read from its end up to the limit.
    scans = [one for one in statements.scans() if not one.startswith(f"operations by {index}")]
    assert (len(found), scans) == (20, [])
    assert index in statements.indexes()


def test_a_page_of_a_rare_state_reads_no_history(filled: Filled, statements: Statements) -> None:
    if filled.engine.dialect.name == "sqlite":
        pytest.skip("SQLite takes a partial index only where its condition is written out")

    with statements.captured(), reading(filled.engine) as connection:
        pages.page(connection, pages.Wanted(Scope(1), state=["failed"]), 50)
        pages.page(connection, pages.Wanted(Scope(1), state=["failed", "missed"]), 50)

    # What other tests left here may make the newest operations cheaper for one of the two.
    assert "operations_troubled" in statements.indexes()


def test_what_ended_lately_is_read_by_its_indexes(filled: Filled, statements: Statements) -> None:
    then, count = instant(filled.now - timedelta(days=1)), 20_000
    names = "action_uid revision first_at last_at count reason recorded_at decided_at"
    spans = ((str(filled.due[0]), 1, then, then, 1, "too late", then, then) for _ in range(count))
    bulk_insert(filled.engine, "missed_spans", names, spans)
    analyze(filled.engine)

    with statements.captured(), reading(filled.engine) as connection:
        measures.ended(connection, filled.now + MINUTE, filled.now + 2 * MINUTE)

    whole = [one for reads in statements.reads().values() for one in reads if one.is_whole]
    assert not {one.table for one in whole} & {"missed_spans", "operations", "actions"}
    assert_indexed(statements, "missed_spans_recorded", "operations_finished", "notices_finished")


@pytest.mark.usefixtures("allowed")
def test_deciding_what_is_in_doubt(filled: Filled, statements: Statements) -> None:
    (id,) = of_the_application(filled, "left")
    with filled.engine.begin() as connection:
        reserved = reserve.reserve_sendable(connection, 1, only=[id])
        external_send.begin(connection, reserved, RULES, NO_ALERTS)
    update_operation(filled.engine, id, not_before=database_now(-1.0))

    with statements.captured(), filled.engine.begin() as connection:
        decided = external_send.decide_doubtful(connection, 10, NO_ALERTS)

    assert dict(decided)[id] == "failed"
    assert_indexed(statements, "operations_to_send")


def test_a_job_and_a_page_of_jobs_are_found(filled: Filled, statements: Statements) -> None:
    operations = {"job": {"url": "https://example.com/other"}}
    make_action(filled.engine, name="another job", operations=operations)

    with statements.captured(), reading(filled.engine) as connection:
        (found,) = action_jobs.with_job(connection, 1, id_of("https://example.com/other"))
        page = action_jobs.page(connection, 1, None, 50)
        rest = action_jobs.page(connection, 1, (found["job_id"], found["name"]), 50)

    place = [one["name"] for one in page].index("another job")
    assert (found["name"], len(rest)) == ("another job", len(page) - place - 1)
    assert_indexed(statements, "actions_jobs")


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("act", "indexes"), ACTS)
def test_what_is_given_is_found_among_many(
    filled: Filled,
    statements: Statements,
    act: Callable[[Filled, Statements], None],
    indexes: set[str],
) -> None:
    act(filled, statements)

    assert_indexed(statements, *indexes)
