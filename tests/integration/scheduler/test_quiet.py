"""In a quiet period what is due is recorded, and sent when it ends."""

from datetime import datetime, timedelta
from threading import Thread
from typing import Any

import pytest
import sqlalchemy as sa

from broker.sending import send_reserved
from models.errors import Refused
from models.sql import read_clock
from models.store import quiet
from models.store.notices import overdue
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import jobs
from models.store.operations.outbox import Message
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.changes.change import Changed
from scheduler.explain import explain
from scheduler.on_demand import manual
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tests.factories import (
    STEPS,
    make_action,
    make_operation,
    row_of,
    rows_of,
    update_operation,
    waits_for_lock,
    yearly,
)
from tests.servers import Broker
from views.installation import Installation
from views.status import quiet as period

MINUTE = timedelta(minutes=1)
JOB = {"job": {"url": "https://example.com/feed"}}


def clock(engine: sa.Engine) -> datetime:
    with reading(engine) as connection:
        return read_clock(connection).replace(microsecond=0)


def begin_quiet(engine: sa.Engine, ends_at: datetime) -> None:
    with engine.begin() as connection:
        quiet.begin(connection, ends_at)


def end_quiet(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        quiet.end(connection)


def run_tick(engine: sa.Engine) -> TickReport:
    return tick(engine, None, Sweeper(timedelta(seconds=45), NO_ALERTS), STEPS)


def make_due(engine: sa.Engine, **changes: Any) -> Changed:
    """Store an action with one occurrence, at the last full minute; the next is in a year."""
    now = clock(engine)
    return make_action(engine, since=now - MINUTE, when=yearly(now), **changes)


@pytest.mark.parametrize("is_ended_early", [True, False])
def test_what_is_due_waits_for_the_end(
    engine: sa.Engine, broker: Broker, is_ended_early: bool
) -> None:
    action = make_due(engine)
    ends_at = clock(engine) + timedelta(hours=1)
    begin_quiet(engine, ends_at)

    first, second = run_tick(engine), run_tick(engine)

    (row,) = rows_of(engine, action)
    assert (first.recorded, first.sent, second.sent) == (1, 0, 0)
    assert (row["state"], row["not_before"]) == ("pending", ends_at)
    assert broker.messages("quick") == []

    if is_ended_early:
        end_quiet(engine)
    else:
        begin_quiet(engine, clock(engine))
    run_tick(engine)

    assert (str(row["id"]), 1) in broker.messages("quick")


def test_what_is_put_off_while_the_period_ends_waits_no_longer(
    engine: sa.Engine, broker: Broker
) -> None:
    action = make_action(engine)
    begin_quiet(engine, clock(engine) + timedelta(hours=1))
    id = make_operation(engine, action, clock(engine))
    row = row_of(engine, id)
    message = Message(id, 1, row["task"], row["queue"])
    sender = Thread(target=send_reserved, args=(engine, [message]))

    with engine.begin() as connection:
        quiet.end(connection)
        sender.start()
        assert wait_for(lambda: waits_for_lock(engine) or not sender.is_alive(), 20)
    sender.join()

    assert broker.messages("quick") == [(str(id), 1)]


def test_a_manual_run_waits_too_and_says_so(
    engine: sa.Engine, broker: Broker, settings: Settings
) -> None:
    action = make_action(engine)
    ends_at = clock(engine) + timedelta(hours=1)
    begin_quiet(engine, ends_at)

    id, sent = manual.run_now(engine, action.uid, "ann")

    assert sent.count == 0
    assert broker.messages("quick") == []
    row = row_of(engine, id)
    with reading(engine) as connection:
        found = explain(action.uid, row["occurrence_at"], connection, settings, steps=STEPS)
    assert "waits for the end of the quiet period at" in found.operations[0]["text"]


def test_no_worker_gets_a_job_meanwhile(engine: sa.Engine) -> None:
    make_due(engine, operations=JOB)
    begin_quiet(engine, clock(engine) + timedelta(hours=1))
    run_tick(engine)

    def offered() -> int:
        with reading(engine) as connection:
            return sum(map(len, jobs.offers(connection, {(None, "quick"): 5}).values()))

    assert offered() == 0
    end_quiet(engine)
    run_tick(engine)
    assert offered() == 1


def test_what_waited_is_overdue_only_when_it_waits_on(engine: sa.Engine) -> None:
    action = make_due(engine)
    begin_quiet(engine, clock(engine) + timedelta(hours=1))
    run_tick(engine)
    (row,) = rows_of(engine, action)
    update_operation(engine, row["id"], recorded_at=clock(engine) - 20 * MINUTE)
    alerts = AlertSettings(mail=("ops@example.com",), overdue_minutes=10)

    def alert() -> int:
        with engine.begin() as connection:
            return len(overdue.alert(connection, alerts, 10))

    assert alert() == 0
    end_quiet(engine)
    assert alert() == 0
    begin_quiet(engine, clock(engine) - 11 * MINUTE)
    assert alert() == 1


@pytest.fixture
def installation(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> Installation:
    opened = Installation()
    monkeypatch.setattr(type(opened), "engine", engine)
    return opened


@pytest.mark.parametrize(
    ("until", "problem"),
    [
        ("P31D", 'write "P30D" or less'),
        ("PT0S", "is too short"),
        ("2020-01-01T00:00Z", "is not within the next 30 days"),
        ("2199-01-01T00:00Z", "is not within the next 30 days"),
        ("tomorrow", "is not an instant"),
    ],
)
def test_an_end_is_soon_and_ahead(
    engine: sa.Engine, installation: Installation, until: str, problem: str
) -> None:
    with pytest.raises(Refused, match=problem):
        period.pause(installation, until)

    with reading(engine) as connection:
        assert quiet.until(connection) is None


def test_the_end_can_be_moved(engine: sa.Engine, installation: Installation) -> None:
    action = make_due(engine)
    first = period.pause(installation, "PT1H")
    run_tick(engine)

    moved = period.pause(installation, "PT2H")

    assert moved.was_until == first.until
    assert moved.waiting == 1
    assert rows_of(engine, action)[0]["not_before"] == moved.until
    ended = period.resume(installation)
    assert (ended.until, ended.was_until, ended.waiting) == (None, moved.until, 1)
    assert period.resume(installation).was_until is None
