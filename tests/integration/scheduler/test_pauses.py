"""What a pause covers is recorded, and sent when the pause ends."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from broker.sending import send_reserved
from models.errors import NotFound, Refused
from models.sql import database_now
from models.store import pauses as store
from models.store.notices import overdue
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import jobs, reserve
from models.store.operations.reserve import Message
from models.store.operations.start_checks import NotStarted
from models.store.operations.take import Claim
from models.store.scope import Scope
from models.tables import pauses as table
from models.worker_kinds import CELERY, HTTP, OURS, WorkerKind
from runtime.config import Settings
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.changes import Change
from scheduler.on_demand import manual
from services.installation import Installation
from services.status import pauses, status
from services.verdict import assess
from tests.attempts import claim
from tests.factories import (
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
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, clock_of, execute, why

JOB = {"job": {"url": "https://example.com/feed"}}
TASKS = {OURS: "execute_scheduled_action_quick", HTTP: "job", CELERY: "shop.sync"}


@pytest.fixture
def opened(engine: sa.Engine, settings: Settings) -> Installation:
    return installation_on(engine, settings)


def of_app(opened: Installation, name: str) -> Installation:
    return installation_on(opened.engine, opened.settings, app=name)


def clock(engine: sa.Engine) -> datetime:
    return clock_of(engine).replace(microsecond=0)


def make_due(engine: sa.Engine, **changes: Any) -> Change:
    """Store an action with one occurrence, at the last full minute; the next is in a year."""
    now = clock(engine)
    return make_action(engine, since=now - MINUTE, when=yearly(now), **changes)


def sent(broker: Broker, queue: str = "quick") -> list[str]:
    return [id for id, _ in broker.messages(queue)]


def message_of(engine: sa.Engine, id: UUID) -> Message:
    row = row_of(engine, id)
    return Message(id, row["attempt"], row["task"], row["queue"])


def sendable(engine: sa.Engine) -> set[UUID]:
    return {one.id for one in act(engine, reserve.reserve_sendable, 100)}


@pytest.mark.parametrize("name", ["quick", "minutebook.quick"])
def test_a_paused_queue_keeps_what_is_due_and_the_others_are_sent(
    engine: sa.Engine, opened: Installation, broker: Broker, name: str
) -> None:
    held = make_due(engine, name="held")
    free = make_due(engine, name="free", policy={"queue": "own"})
    paused = pauses.pause(opened, name, reason="a migration")

    run_tick(engine)
    run_tick(engine)

    ((row,), (other,)) = rows_of(engine, held), rows_of(engine, free)
    assert (paused.name, paused.until, paused.is_paused) == ("minutebook.quick", None, True)
    assert row["state"] == "pending"
    assert (sent(broker), sent(broker, "own")) == ([], [str(other["id"])])

    resumed = pauses.resume(opened, name)
    run_tick(engine)

    assert (resumed.waiting, resumed.was_paused) == (1, True)
    assert sent(broker) == [str(row["id"])]
    (ended,) = pauses.list_pauses(opened, ended=True).root
    assert (ended.reason, ended.ended_by) == ("a migration", opened.actor)
    assert pauses.list_pauses(opened).root == ()


def test_a_pause_ends_by_itself(engine: sa.Engine, opened: Installation, broker: Broker) -> None:
    action = make_due(engine)
    pauses.pause(opened, everything=True, until="PT1H")
    run_tick(engine)
    assert sent(broker) == []

    execute(engine, sa.update(table).values(until=database_now(-1.0)))
    run_tick(engine)

    assert sent(broker) == [str(row["id"]) for row in rows_of(engine, action)]
    assert pauses.resume(opened, everything=True).was_paused is False


def test_an_app_is_paused_alone(engine: sa.Engine, opened: Installation, broker: Broker) -> None:
    app = make_app(engine, "dune")
    theirs, mine = make_action(engine, app=app), make_action(engine)
    ids = [
        make_operation(engine, theirs, clock(engine), app=app),
        make_operation(engine, mine, clock(engine)),
    ]
    pauses.pause(of_app(opened, "dune"), until="PT1H")

    result = send_reserved(engine, [message_of(engine, id) for id in ids])

    assert (result.count, sent(broker)) == (1, [str(ids[1])])
    pauses.resume(of_app(opened, "dune"))
    assert sendable(engine) == {ids[0]}


@pytest.mark.parametrize(
    ("name", "held"),
    [
        pytest.param("celery", {"celery"}, id="queue_of_the_application"),
        pytest.param("minutebook.celery", {"own"}, id="own_queue_of_the_same_name"),
        pytest.param("minutebook.job:celery", {"job"}, id="queue_of_jobs"),
    ],
)
def test_a_name_pauses_the_queue_that_it_names(
    engine: sa.Engine, opened: Installation, name: str, held: set[str]
) -> None:
    names = dict(zip(("own", "job", "celery"), TASKS.values(), strict=True))
    action, ids = make_action(engine), {}
    for number, (what, task) in enumerate(names.items()):
        id = ids[what] = make_operation(engine, action, clock(engine) + number * MINUTE)
        update_operation(engine, id, task=task, queue="celery", not_before=database_now(-1.0))

    assert pauses.pause(opened, name).waiting == 1

    assert sendable(engine) == {id for what, id in ids.items() if what not in held}


@pytest.mark.parametrize(
    ("worker_kind", "attempt"),
    [
        pytest.param(OURS, 1, id="ours"),
        pytest.param(HTTP, 1, id="job"),
        # Nothing of the application is sent twice in one attempt.
        pytest.param(CELERY, 2, id="follower"),
    ],
)
def test_a_take_of_what_was_sent_before_is_put_back(
    engine: sa.Engine, opened: Installation, worker_kind: WorkerKind, attempt: int
) -> None:
    id = make_operation(engine, make_action(engine), clock(engine))
    sending = database_now() if worker_kind is CELERY else None
    update_operation(
        engine,
        id,
        state="queued",
        task=TASKS[worker_kind],
        sent_at=database_now(),
        send_started_at=sending,
    )
    pauses.pause(opened, everything=True)

    def take(attempt: int) -> Claim | NotStarted:
        return act(engine, claim, id, attempt, "w", worker_kind, alerts=NO_ALERTS)

    put_back = take(1)

    row = row_of(engine, id)
    assert isinstance(put_back, NotStarted)
    assert (put_back.why, row["state"], row["attempt"]) == ("put back", "pending", attempt)
    assert sendable(engine) == set()
    pauses.resume(opened, everything=True)
    assert sendable(engine) == {id}
    assert isinstance(take(attempt), Claim)


@pytest.mark.usefixtures("broker")
def test_no_worker_gets_a_job_of_a_paused_queue(engine: sa.Engine, opened: Installation) -> None:
    """Neither one that was offered before, nor one that is due later."""
    make_due(engine, operations=JOB)
    run_tick(engine)

    def offered() -> int:
        return sum(map(len, act(engine, jobs.offers, {(None, "quick"): 5}).values()))

    assert offered() == 1
    assert pauses.pause(opened, "minutebook.job:quick").waiting == 1
    assert offered() == 0
    pauses.resume(opened, "minutebook.job:quick")
    assert offered() == 1


def test_a_manual_run_waits_too(engine: sa.Engine, opened: Installation, broker: Broker) -> None:
    action = make_action(engine)
    pauses.pause(opened, "quick", reason="a migration")

    id, result = manual.run_now(engine, action.uid, "ann")

    assert (result.count, sent(broker)) == (0, [])
    found = why(engine, action, row_of(engine, id)["occurrence_at"])
    assert found.operations[0]["text"] == (
        f"is not sent: queue minutebook.quick was paused by {opened.actor} (a migration)"
    )


@pytest.mark.usefixtures("broker")
def test_what_waited_during_a_pause_is_not_overdue(engine: sa.Engine, opened: Installation) -> None:
    action = make_due(engine)
    pauses.pause(opened, "quick")
    run_tick(engine)
    (row,) = rows_of(engine, action)
    update_operation(engine, row["id"], recorded_at=clock(engine) - 20 * MINUTE)
    alerts = AlertSettings(mail=("ops@example.com",), overdue_minutes=10)

    def alert() -> int:
        return len(act(engine, overdue.alert, alerts, 10))

    assert alert() == 0
    pauses.resume(opened, "quick")
    assert alert() == 0
    execute(engine, sa.update(table).values(ended_at=database_now(-660.0)))
    assert alert() == 1


@pytest.mark.usefixtures("broker")
def test_the_verdict_and_the_lists_show_it(engine: sa.Engine, opened: Installation) -> None:
    make_app(engine, "dune")
    make_due(engine)
    pauses.pause(opened, "celery", until="PT1H")
    pauses.pause(opened, "quick")
    pauses.pause(of_app(opened, "dune"))
    run_tick(engine)

    found = [one.text for one in status(opened).verdict.findings if one.kind == "paused"]
    rows = {one.name: one for one in pauses.list_queues(opened).root}

    assert [text.partition(" is paused")[0] for text in found] == [
        "queue celery", "queue minutebook.quick", "small app dune",
    ]  # fmt: skip
    assert {name for name, one in rows.items() if one.is_paused} == {"celery", "minutebook.quick"}
    assert rows["minutebook.quick"].waiting == 1
    assert [one.name for one in pauses.list_pauses(of_app(opened, "dune")).root] == ["dune"]


@pytest.mark.usefixtures("broker")
def test_many_pauses_are_counted_by_one_statement(engine: sa.Engine, opened: Installation) -> None:
    for name in ("dune", "shop"):
        make_due(engine, app=make_app(engine, name))
        pauses.pause(of_app(opened, name))
    make_due(engine, operations=JOB)
    pauses.pause(opened, "quick")
    run_tick(engine)
    pauses.pause(opened, everything=True)

    with reading(engine) as connection, executed(engine) as statements:
        seen = assess(connection, opened.settings)

    assert [count for _, count in seen.facts.paused] == [1, 1, 2, 3]
    counts = [one for one in statements if "GROUP BY operations.small_app_id" in one]
    assert len(counts) == 1


def test_an_app_knows_that_everything_is_paused(engine: sa.Engine, opened: Installation) -> None:
    app = make_app(engine, "dune")
    pauses.pause(opened, everything=True)

    verdict = act(engine, assess, opened.settings, Scope(app.id)).verdict

    assert "paused" in {one.kind for one in verdict.findings}
    assert [one.kind for one in pauses.list_pauses(of_app(opened, "dune")).root] == ["all"]


def test_a_mark_after_a_put_back_holds_up_nothing(engine: sa.Engine, opened: Installation) -> None:
    """A worker may take a message before its sender has marked it."""
    id = make_operation(engine, make_action(engine), clock(engine))
    message = message_of(engine, id)
    pauses.pause(opened, everything=True)
    with engine.begin() as connection:
        claim(connection, id, 1, "w", OURS, alerts=NO_ALERTS)
        reserve.mark_sent(connection, [message])

    pauses.resume(opened, everything=True)

    assert sendable(engine) == {id}


@pytest.mark.parametrize(
    ("asked", "error", "problem"),
    [
        pytest.param({"queue": "celry"}, NotFound, "did you mean 'celery'", id="near"),
        pytest.param({"queue": " "}, NotFound, "no queue is named ' '", id="no_name"),
        pytest.param({}, Refused, "one of them", id="nothing"),
        pytest.param({"queue": "quick", "everything": True}, Refused, "one of them", id="both"),
        pytest.param({"until": "P31D"}, Refused, 'write "P30D" or less', id="too_long"),
        pytest.param({"until": "PT0S"}, Refused, "is too short", id="at_once"),
        pytest.param({"until": "2020-01-01T00:00Z"}, Refused, "next 30 days", id="past"),
        pytest.param({"until": "tomorrow"}, Refused, "is not an instant", id="word"),
        pytest.param({"reason": "x" * 301}, Refused, "at most 300", id="reason"),
    ],
)
def test_a_wrong_pause_is_refused(
    engine: sa.Engine,
    opened: Installation,
    asked: dict[str, Any],
    error: type[Exception],
    problem: str,
) -> None:
    given = asked if not {"until", "reason"} & asked.keys() else {"everything": True, **asked}
    with pytest.raises(error, match=problem):
        pauses.pause(opened, **given)

    assert act(engine, store.in_force) == ()


def test_a_small_app_pauses_nothing_of_the_installation(opened: Installation) -> None:
    make_app(opened.engine, "dune")
    for asked in ({"queue": "quick"}, {"everything": True}):
        with pytest.raises(Refused, match="are the installation's"):
            pauses.pause(of_app(opened, "dune"), **asked)
