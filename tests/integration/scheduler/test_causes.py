"""What did not run says what kept it: an outage with its times, a pause, a busy queue."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from broker.app import configure, disconnect
from models.sql import database_now
from models.store import pauses, workers
from models.store.pauses import PauseKind, Target
from models.store.workers import Heartbeat
from models.tables import findings, notices
from runtime.config import Settings
from runtime.sections import AlertSettings
from scheduler.changes import Change
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from services.verdict import assess
from services.verdict.finding import Kind
from tests.factories import make_action, make_app, make_operation, rows_of
from tests.servers import Broker, running_broker
from tests.ticks import MINUTE, tick_at
from tests.told import told_as
from tests.transactions import act, claim_as, execute, fetched, why
from tests.virtual_clock import VirtualClock

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
SPAN = r"from \S+Z to \S+Z \(.+\)"
ADMINS = AlertSettings(mail=("ops@example.com",))

pytestmark = pytest.mark.usefixtures("broker")


@pytest.fixture
def mortal(settings: Settings) -> Iterator[Broker]:
    """A broker of this test alone, which may die."""
    with running_broker() as made:
        configure(settings.model_copy(update={"broker_url": SecretStr(made.url)}))
        yield made
        disconnect()


def run_tick(engine: sa.Engine, minutes: int) -> TickReport:
    return tick(engine, NOON + minutes * MINUTE, Sweeper(timedelta(seconds=45), ADMINS))


def make(engine: sa.Engine, **changes: Any) -> Change:
    return make_action(engine, since=NOON, **changes)


def reasons(engine: sa.Engine, action: Change) -> list[tuple[str, str | None]]:
    return [(row["state"], row["reason"]) for row in rows_of(engine, action)]


def test_runs_that_a_dead_broker_kept_name_its_outage(engine: sa.Engine, mortal: Broker) -> None:
    action = make(engine)
    mortal.stop()
    away = [run_tick(engine, minutes) for minutes in (1, 2, 3)]
    mortal.start()
    back = run_tick(engine, 4)

    assert [report.broker_error is None for report in (*away, back)] == [False] * 3 + [True]
    *kept, last = reasons(engine, action)
    assert last == ("queued", None)
    for minute, (state, reason) in enumerate(kept, 2):
        by = f"overtaken by 2027-01-04T12:0{minute}:00Z"
        assert state == "skipped"
        assert re.fullmatch(f"{by}: the broker did not answer {SPAN}", reason or "")
    assert why(engine, action, NOON + MINUTE).text.endswith(f": {kept[0][1]}")


def test_an_outage_is_one_finding_whose_end_a_tick_tells(engine: sa.Engine, mortal: Broker) -> None:
    make(engine)
    mortal.stop()
    for minutes in (1, 2):
        run_tick(engine, minutes)
    # As a web process has told it.
    execute(engine, sa.update(findings).values(told_at=database_now()))
    mortal.start()
    for minutes in (3, 4):
        run_tick(engine, minutes)

    (row,) = fetched(engine, sa.select(findings)).all()
    (notice,) = fetched(engine, sa.select(notices)).mappings()
    assert (row.kind, row.began_at < row.ended_at) == ("broker_down", True)
    assert "refuses connections" in row.text
    assert (told_as(notice), notice["target"]["to"]) == ("broker_down over", "ops@example.com")


@pytest.fixture
def worker(engine: sa.Engine) -> None:
    act(engine, workers.beat, Heartbeat("quick@tests", "quick", 1))


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_runs_that_no_worker_could_take_say_so(engine: sa.Engine, overlap: str) -> None:
    action, ended = make(engine, policy={"overlap": overlap}), Target(PauseKind.ALL)
    act(engine, pauses.begin, ended, None, "ann", None)
    run_tick(engine, 1)
    act(engine, pauses.end, ended, "ann")
    for minutes in (2, 3, 4):
        run_tick(engine, minutes)

    kept = [reason or "" for state, reason in reasons(engine, action) if state == "skipped"]
    assert kept
    assert all(reason.endswith(": no worker listens to queue quick") for reason in kept)


def test_a_queue_that_no_worker_reads_is_found_while_one_run_overtakes_another(
    engine: sa.Engine, settings: Settings
) -> None:
    clock = VirtualClock(engine, NOON)
    act(engine, workers.beat, Heartbeat("quick@tests", "quick", 1))
    make(engine)
    for minutes in (1, 2, 3):
        tick_at(clock, NOON + minutes * MINUTE)

    for seconds in (0, 10, 20, 50):
        clock.set(NOON + 3 * MINUTE + timedelta(seconds=seconds))
        found = {one.kind: one for one in act(engine, assess, settings).findings}
        assert found[Kind.NO_WORKER].since == NOON


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_runs_that_a_pause_kept_name_it(engine: sa.Engine, overlap: str) -> None:
    action = make(engine, policy={"overlap": overlap})
    target = Target(PauseKind.ALL)
    act(engine, pauses.begin, target, None, "ann", None)
    for minutes in (1, 2, 3):
        run_tick(engine, minutes)
    act(engine, pauses.end, target, "ann")
    run_tick(engine, 4)

    kept = [reason or "" for state, reason in reasons(engine, action) if state == "skipped"]
    assert kept
    assert all(re.search(f": everything was paused {SPAN}$", reason) for reason in kept)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("app", ["default", "rival"])
def test_a_run_that_waited_names_what_held_it_if_it_may(engine: sa.Engine, app: str) -> None:
    action, owner = make(engine), make_app(engine, app)
    id = make_operation(engine, make_action(engine, name="long one", app=owner), NOON, app=owner)
    claim_as(engine, id, 1, "tests")
    run_tick(engine, 1)
    run_tick(engine, 2)

    (state, reason), _ = reasons(engine, action)
    held = f'"long one" ({id})' if app == "default" else "a run of another small app"
    assert state == "skipped"
    assert f": queue quick was busy with {held} since " in (reason or "")


@pytest.mark.usefixtures("worker")
def test_a_run_that_waited_for_one_of_its_action_names_it(engine: sa.Engine) -> None:
    action = make(engine, policy={"overlap": "queue"})
    for minutes in (1, 2):
        run_tick(engine, minutes)
        claim_as(engine, rows_of(engine, action)[-1]["id"], 1, "tests")
    for minutes in (3, 4):
        run_tick(engine, minutes)

    (running, _), (state, reason), *_ = reasons(engine, action)
    assert (running, state) == ("running", "skipped")
    assert (reason or "").endswith(f": run {rows_of(engine, action)[0]['id']} was running")
