"""An overdue action raises one alert, and one notice when it runs again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from models.action.health import health_of
from models.operation import OperationState
from models.sql import database_now
from models.store import actions, workers
from models.store.actions.status import perhaps_unhealthy
from models.store.notices import findings, overdue
from models.store.notices.findings import Found
from models.store.operations.end import Outcome
from models.store.scope import WHOLE_INSTALLATION
from models.tables import action_state, notices, operations
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.changes import Change, editing
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import (
    author,
    cursor_of,
    make_action,
    make_operation,
    rows_of,
    update_operation,
)
from tests.ticks import MINUTE
from tests.told import told_as
from tests.transactions import act, claim_as, clock_of, execute, fetched, finish

OPS = AlertSettings(mail=("ops@example.com",))
SOON = AlertSettings(mail=("ops@example.com",), overdue_minutes=3)


def make_waiting(engine: sa.Engine, minutes: int = 20, **changes: Any) -> Change:
    """Store an action with an unstarted operation that was recorded so long ago."""
    action = make_action(engine, **changes)
    now = clock_of(engine).replace(microsecond=0)
    at = now - minutes * MINUTE
    id = make_operation(engine, action, at, 'Scheduled action "it"')
    update_operation(engine, id, recorded_at=at)
    return action


def alert(engine: sa.Engine, alerts: AlertSettings = OPS) -> list[tuple[str, str]]:
    return act(engine, overdue.alert, alerts, 500)


def told(engine: sa.Engine) -> list[tuple[str, str]]:
    rows = fetched(engine, sa.select(notices).order_by(notices.c.created_at)).mappings()
    return [(told_as(row), row["target"]["to"]) for row in rows]


def test_one_alert_for_an_action_says_that_no_worker_listens(engine: sa.Engine) -> None:
    hooks = {"on_failure": [{"mail": "ann@example.com"}]}
    action = make_waiting(engine, policy={"queue": "month_end"}, hooks=hooks)

    alerted = [alert(engine) for _ in range(3)]

    assert alerted == [[(action.name, "no worker listens to queue month_end")], [], []]
    assert sorted(told(engine)) == [("overdue", "ann@example.com"), ("overdue", "ops@example.com")]


def test_a_row_of_no_small_app_keeps_no_other_alert(engine: sa.Engine) -> None:
    broken, action = make_waiting(engine, 30, name="broken"), make_waiting(engine)
    of_broken = operations.c.action_uid == broken.uid
    execute(engine, sa.update(operations).where(of_broken).values(small_app_id=404))

    assert [name for name, _ in alert(engine)] == [action.name]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("pending", "it could not be sent; is the broker running?"),
        ("queued", "it waits in queue quick for a free worker"),
    ],
)
def test_with_a_worker_the_reason_is_another(engine: sa.Engine, state: str, reason: str) -> None:
    action = make_waiting(engine)
    act(engine, workers.beat, workers.Heartbeat("quick@here:1", "quick", 1, slots=1))
    execute(engine, sa.update(operations).values(state=state))

    assert alert(engine) == [(action.name, reason)]


def test_what_a_dead_broker_keeps_is_overdue_for_that(engine: sa.Engine) -> None:
    action = make_waiting(engine)
    act(engine, findings.begin, Found("broker_down", "", "away", ""))

    ((name, reason),) = alert(engine)

    assert (name, reason.startswith("the broker did not answer from ")) == (action.name, True)
    (unwell,) = act(engine, perhaps_unhealthy)
    assert health_of(unwell, 3).sentence.endswith(f" has not started: {reason}")


@pytest.mark.parametrize(
    ("ran_s", "alerts"),
    [
        pytest.param(-60.0, 0, id="meanwhile"),
        pytest.param(86_400.0, 1, id="by_a_clock_that_was_ahead"),
    ],
)
def test_what_ran_meanwhile_is_not_overdue(engine: sa.Engine, ran_s: float, alerts: int) -> None:
    state = {"action_uid": make_waiting(engine).uid, "last_run_at": database_now(ran_s)}
    execute(engine, sa.insert(action_state).values(state))

    assert len(alert(engine)) == alerts


def test_what_is_paused_or_not_late_yet_is_not_overdue(engine: sa.Engine) -> None:
    action = make_waiting(engine)
    editing.set_active(engine, action.uid, active=False, author=author())
    make_waiting(engine, 10, name="not late yet")

    assert alert(engine) == []


def test_two_daemons_owe_one_alert(engine: sa.Engine) -> None:
    for number in range(20):
        make_waiting(engine, name=f"action {number}")

    with ThreadPoolExecutor() as pool:
        found = [pool.submit(alert, engine) for _ in range(4)]
        alerted = [one for each in found for one in each.result()]

    assert len(alerted) == len(set(alerted)) == len(told(engine)) == 20


def test_it_is_told_when_it_runs_again_and_when_it_is_overdue_again(engine: sa.Engine) -> None:
    action = make_waiting(engine, policy={"overlap": "allow"})
    alert(engine)
    now = clock_of(engine).replace(microsecond=0)

    for minute in (0, 1):
        id = make_operation(engine, action, now + minute * MINUTE)
        claim_as(engine, id, 1, "tests")
        finish(engine, id, Outcome(OperationState.SUCCESS), alerts=OPS)
    execute(engine, sa.update(action_state).values(last_run_at=now - 20 * MINUTE))
    alert(engine)

    kinds = ["overdue", "overdue over", "overdue"]
    assert told(engine) == [(kind, "ops@example.com") for kind in kinds]


def tick_each_minute(engine: sa.Engine, action: Change, minutes: int) -> None:
    """Tick so often; each time everything grows a minute older."""
    start = cursor_of(engine, action)["watermark"].replace(second=0, microsecond=0)
    sweeper = Sweeper(MINUTE, SOON)
    for minute in range(1, minutes + 1):
        tick(engine, start + minute * MINUTE, sweeper)
        for row in rows_of(engine, action):
            older = {"recorded_at": row["recorded_at"] - MINUTE}
            if row["finished_at"] is not None:
                older["finished_at"] = row["finished_at"] - MINUTE
            update_operation(engine, row["id"], **older)


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_what_is_overtaken_again_and_again_is_overdue(engine: sa.Engine, overlap: str) -> None:
    action = make_action(engine, policy={"overlap": overlap})

    tick_each_minute(engine, action, 3)
    before = told(engine)
    tick_each_minute(engine, action, 4)

    assert (before, told(engine)) == ([], [("overdue", "ops@example.com")])
    with reading(engine) as connection:
        found = actions.find(connection, 1, action.name, WHOLE_INSTALLATION)
        (unwell,) = perhaps_unhealthy(connection)
    assert not health_of(found, 3).is_healthy
    assert "overdue" in health_of(unwell, 3).sentence


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("end_at_last", [False, True], ids=["runs", "just ended"])
def test_what_a_long_run_overtakes_is_not_overdue(engine: sa.Engine, end_at_last: bool) -> None:
    action = make_action(engine)
    tick_each_minute(engine, action, 1)
    (row,) = rows_of(engine, action)
    claim_as(engine, row["id"], 1, "tests")
    update_operation(
        engine,
        row["id"],
        heartbeat_at=database_now(),
        first_started_at=row["recorded_at"] - 40 * MINUTE,
    )

    tick_each_minute(engine, action, 6)
    if end_at_last:
        finish(engine, row["id"], Outcome(OperationState.SUCCESS))
        tick_each_minute(engine, action, 2)

    assert told(engine) == []


@pytest.mark.usefixtures("broker")
def test_a_tick_finds_it_and_sends_the_alert(engine: sa.Engine) -> None:
    make_waiting(engine)

    report = tick(engine, None, Sweeper(MINUTE, OPS))
    again = tick(engine, None, Sweeper(MINUTE, OPS))

    assert (report.overdue, report.notices) == (1, 1)
    assert (again.overdue, again.notices) == (0, 0)
