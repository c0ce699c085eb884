"""What a tick repairs, and when: silent leases, waits for what is gone, what comes back."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from broker.sending import Sent
from models.sql import database_now
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.reserve import Message
from scheduler import batches, decision, sweep
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import claimed, make_action, make_operation, row_of, update_operation
from tests.ticks import LEASE, MINUTE, SECOND, run_tick
from tests.virtual_clock import VirtualClock

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
EVERY_MINUTE = {"cron_rule": "* * * * *", "timezone": "UTC"}


def test_no_silent_lease_is_taken_back_before_its_worker_could_renew_it(engine: sa.Engine) -> None:
    id = make_operation(engine, make_action(engine), NOON)
    claimed(engine, id)
    update_operation(engine, id, heartbeat_at=database_now(-60.0))
    sweeper = Sweeper(LEASE, NO_ALERTS)

    at_the_start = tick(engine, None, sweeper).lost
    sweeper._trusted_from = 0.0

    assert (at_the_start, tick(engine, None, sweeper).lost) == (0, 1)


def test_what_waited_for_one_that_is_gone_is_sent_by_the_tick_that_finds_it(
    engine: sa.Engine,
) -> None:
    id = make_operation(engine, make_action(engine), NOON)
    update_operation(engine, id, waiting_for=uuid4(), not_before=database_now(-1.0))

    report = run_tick(engine)

    assert (report.released, report.sent) == (1, 1)
    assert row_of(engine, id)["state"] == "queued"


def test_what_comes_back_while_a_tick_sends_waits_for_the_next(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock(engine, NOON)
    ids = [make_operation(engine, make_action(engine, name=name), NOON) for name in "ab"]
    for id in ids:
        update_operation(engine, id, not_before=NOON - MINUTE)
    sent: list[UUID] = []

    def send_and_put_back(_engine: sa.Engine, messages: Sequence[Message], **_: object) -> Sent:
        sent.extend(one.id for one in messages)
        clock.set(clock.now + SECOND)
        update_operation(engine, sent[-1], not_before=clock.now)
        return Sent(len(messages) if len(sent) < 9 else 0, None if len(sent) < 9 else "no end")

    monkeypatch.setattr(sweep, "MOST_RESERVED", 1)
    monkeypatch.setattr(sweep, "send_reserved", send_and_put_back)

    assert sweep.dispatch_ready(engine) == Sent(2)
    assert sorted(sent) == sorted(ids)


def test_an_action_of_which_a_tick_sends_no_more_is_left_to_the_next(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (batches, decision):
        monkeypatch.setattr(module, "MOST_SENT", 2)
    policy = {"catch_up": "all", "overlap": "allow"}
    make_action(engine, when=EVERY_MINUTE, since=NOON - 5 * MINUTE, policy=policy)

    assert [run_tick(engine, NOON).recorded for _ in range(3)] == [2, 2, 1]
