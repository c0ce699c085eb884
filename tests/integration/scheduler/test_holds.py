"""What a held queue, application or small app has due is recorded, and sent when the hold ends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from broker.sending import send_reserved
from models.errors import NotFound, Refused
from models.sql import read_clock
from models.store import holds
from models.store.notices import overdue
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import jobs
from models.store.operations.outbox import Message
from runtime.config import Settings
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.changes.change import Changed
from scheduler.explain import explain
from scheduler.on_demand import manual
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import (
    STEPS,
    installation_on,
    make_action,
    make_app,
    make_operation,
    row_of,
    rows_of,
    update_operation,
    yearly,
)
from tests.servers import Broker
from tests.statements import executed
from views.installation import Installation
from views.status import holds as pauses
from views.status import status

MINUTE = timedelta(minutes=1)
WITHOUT_END = datetime(9999, 1, 1, tzinfo=UTC)
JOB = {"job": {"url": "https://example.com/feed"}}


@pytest.fixture
def opened(engine: sa.Engine, settings: Settings, broker: Broker) -> Installation:
    return installation_on(engine, settings)


def clock(engine: sa.Engine) -> datetime:
    with reading(engine) as connection:
        return read_clock(connection).replace(microsecond=0)


def run_tick(engine: sa.Engine) -> None:
    tick(engine, None, Sweeper(timedelta(seconds=45), NO_ALERTS), STEPS)


def make_due(engine: sa.Engine, **changes: Any) -> Changed:
    """Store an action with one occurrence, at the last full minute; the next is in a year."""
    now = clock(engine)
    return make_action(engine, since=now - MINUTE, when=yearly(now), **changes)


def sent(broker: Broker, queue: str = "quick") -> list[str]:
    return [id for id, _ in broker.messages(queue)]


@pytest.mark.parametrize("name", ["quick", "minutebook.quick"])
def test_a_held_queue_keeps_what_is_due_and_the_others_are_sent(
    engine: sa.Engine, opened: Installation, broker: Broker, name: str
) -> None:
    held = make_due(engine, name="held")
    free = make_due(engine, name="free", policy={"queue": "own"})
    paused = pauses.pause(opened, name)

    run_tick(engine)
    run_tick(engine)

    ((row,), (other,)) = rows_of(engine, held), rows_of(engine, free)
    assert (paused.name, paused.until, paused.is_paused) == ("minutebook.quick", None, True)
    assert (row["state"], row["not_before"]) == ("pending", WITHOUT_END)
    assert (sent(broker), sent(broker, "own")) == ([], [str(other["id"])])

    resumed = pauses.resume(opened, name)
    run_tick(engine)

    assert (resumed.waiting, resumed.was_paused) == (1, True)
    assert sent(broker) == [str(row["id"])]


def test_a_hold_ends_by_itself(engine: sa.Engine, opened: Installation, broker: Broker) -> None:
    action = make_due(engine)
    paused = pauses.pause(opened, "quick", "PT1H")
    run_tick(engine)
    (row,) = rows_of(engine, action)
    assert row["not_before"] == paused.until

    with engine.begin() as connection:
        (hold,) = holds.in_force(connection)[1]
        holds.begin(connection, replace(hold, until=clock(engine)))
    run_tick(engine)

    assert sent(broker) == [str(row["id"])]
    assert pauses.resume(opened, "quick").was_paused is False


def test_a_small_app_is_held_alone(engine: sa.Engine, opened: Installation, broker: Broker) -> None:
    app = make_app(engine, "dune")
    theirs, mine = make_action(engine, app=app), make_action(engine)
    ids = [
        make_operation(engine, theirs, clock(engine), app=app),
        make_operation(engine, mine, clock(engine)),
    ]
    pauses.pause_app(opened, "dune", "PT1H")

    result = send_reserved(engine, [message_of(engine, id) for id in ids])

    assert (result.count, sent(broker)) == (1, [str(ids[1])])
    pauses.resume_app(opened, "dune")
    assert row_of(engine, ids[0])["not_before"] <= clock(engine) + MINUTE


def message_of(engine: sa.Engine, id: Any) -> Message:
    row = row_of(engine, id)
    return Message(id, row["attempt"], row["task"], row["queue"])


def test_what_is_held_gives_back_its_turn(engine: sa.Engine, opened: Installation) -> None:
    """Or a held small app would keep processes of a queue from the others."""
    id = make_operation(engine, make_action(engine), clock(engine))
    update_operation(engine, id, turn="taken")
    pauses.pause_app(opened, "default")

    send_reserved(engine, [message_of(engine, id)])

    assert row_of(engine, id)["turn"] is None


@pytest.mark.parametrize(
    ("name", "held"),
    [
        pytest.param("@crm", {"celery@crm", "mail@crm"}, id="application"),
        pytest.param("celery@crm", {"celery@crm"}, id="queue_of_an_application"),
        pytest.param("celery", {"celery"}, id="queue_of_the_default_application"),
        pytest.param("minutebook.celery", {"own"}, id="own_queue_of_the_same_name"),
        pytest.param("minutebook.job:celery", {"job"}, id="queue_of_jobs"),
    ],
)
def test_a_name_holds_the_queues_that_it_names(
    engine: sa.Engine, opened: Installation, name: str, held: set[str]
) -> None:
    """By the rule in Python, which decides what is sent, and in SQL, which decides what waits."""
    tasks = {
        "celery@crm": ("crm.sync", "celery@crm"),
        "mail@crm": ("crm.mail", "mail@crm"),
        "celery": ("shop.sync", "celery"),
        "own": ("execute_scheduled_action_quick", "celery"),
        "job": ("job", "celery"),
    }
    action, ids = make_action(engine), {}
    for number, (what, (task, queue)) in enumerate(tasks.items()):
        id = ids[what] = make_operation(engine, action, clock(engine) + number * MINUTE)
        update_operation(engine, id, task=task, queue=queue)
    pauses.pause(opened, name)

    with engine.begin() as connection:
        messages = [message_of(engine, id) for id in ids.values()]
        left = holds.put_off(connection, messages)
        _, (hold,) = holds.in_force(connection)
        waiting = holds.waiting(connection, hold)

    assert {one.id for one in left} == {id for what, id in ids.items() if what not in held}
    assert waiting == len(held)


def test_no_worker_gets_a_job_of_a_held_queue(engine: sa.Engine, opened: Installation) -> None:
    """Neither one that was offered before, nor one that is due later."""
    make_due(engine, operations=JOB)
    run_tick(engine)

    def offered() -> int:
        with reading(engine) as connection:
            return sum(map(len, jobs.offers(connection, {(None, "quick"): 5}).values()))

    assert offered() == 1
    assert pauses.pause(opened, "minutebook.job:quick").waiting == 1
    run_tick(engine)
    assert offered() == 0
    pauses.resume(opened, "minutebook.job:quick")
    run_tick(engine)
    assert offered() == 1


def test_a_manual_run_waits_too_and_says_so(
    engine: sa.Engine, opened: Installation, settings: Settings, broker: Broker
) -> None:
    action = make_action(engine)
    pauses.pause(opened, "quick")

    id, result = manual.run_now(engine, action.uid, "ann")

    assert (result.count, sent(broker)) == (0, [])
    with reading(engine) as connection:
        at = row_of(engine, id)["occurrence_at"]
        found = explain(action.uid, at, connection, settings, steps=STEPS)
    assert found.operations[0]["text"] == "is not sent: queue minutebook.quick is paused"


def test_what_waited_is_not_overdue(engine: sa.Engine, opened: Installation) -> None:
    action = make_due(engine)
    pauses.pause(opened, "quick")
    run_tick(engine)
    (row,) = rows_of(engine, action)
    update_operation(engine, row["id"], recorded_at=clock(engine) - 20 * MINUTE)
    alerts = AlertSettings(mail=("ops@example.com",), overdue_minutes=10)

    def alert() -> int:
        with engine.begin() as connection:
            return len(overdue.alert(connection, alerts, 10))

    assert alert() == 0
    pauses.resume(opened, "quick")
    assert alert() == 0


def test_the_verdict_and_the_list_show_it(engine: sa.Engine, opened: Installation) -> None:
    make_app(engine, "dune")
    make_due(engine)
    pauses.pause(opened, "@crm", "PT1H")
    pauses.pause(opened, "quick")
    pauses.pause_app(opened, "dune")
    run_tick(engine)

    found = [one.text for one in status(opened).verdict.findings if one.kind == "paused"]
    rows = {one.name: one for one in pauses.list_queues(opened).root}

    assert [text.partition(" is paused")[0] for text in found] == [
        "application 'crm'", "queue 'minutebook.quick'", "small app 'dune'",
    ]  # fmt: skip
    assert {name for name, one in rows.items() if one.is_paused} == {
        "@crm", "minutebook.quick", "dune",
    }  # fmt: skip
    assert rows["minutebook.quick"].waiting == 1


def test_nothing_held_costs_no_statement(engine: sa.Engine, opened: Installation) -> None:
    """The quiet period and the holds are read by one statement, as the period alone was."""
    message = message_of(engine, make_operation(engine, make_action(engine), clock(engine)))

    with executed(engine) as statements:
        send_reserved(engine, [message])

    assert len([one for one in statements if "installation" in one]) == 1


@pytest.mark.parametrize(
    ("name", "until", "problem"),
    [
        pytest.param(" ", None, "is no name", id="no_name"),
        pytest.param("quick", "P31D", 'write "P30D" or less', id="too_long"),
        pytest.param("quick", "2020-01-01T00:00Z", "is not within the next 30 days", id="past"),
    ],
)
def test_a_wrong_pause_is_refused(
    engine: sa.Engine, opened: Installation, name: str, until: str | None, problem: str
) -> None:
    with pytest.raises(Refused, match=problem):
        pauses.pause(opened, name, until)
    with pytest.raises(NotFound):
        pauses.pause_app(opened, "unknown")

    with reading(engine) as connection:
        assert holds.in_force(connection) == (None, ())
