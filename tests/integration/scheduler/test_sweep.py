"""What a tick repairs and sends: all that is sendable when it begins, and nothing twice."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from broker import app
from broker.sending import Sent, send_ended, send_reserved
from models.operation import Cause, OperationState
from models.sql import database_now
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import reserve
from models.store.operations.end import EndResult
from models.store.operations.reserve import Message
from models.store.tick_work import EVERYTHING
from models.tables import operations
from models.worker_kinds import EXECUTE_QUICK
from runtime.clock import wait_for
from scheduler import batches, decision, sweep
from scheduler.sweep import Sweeper, _dispatch
from scheduler.tick import tick
from tests.factories import (
    claimed,
    locks_waited_for,
    make_action,
    make_operation,
    row_of,
    update_operation,
)
from tests.servers import Broker
from tests.ticks import HOUR, LEASE, MINUTE, SECOND, run_tick
from tests.transactions import act, fetched
from tests.virtual_clock import VirtualClock

AT = datetime(2026, 8, 1, tzinfo=UTC)
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_no_silent_lease_is_taken_back_before_its_worker_could_renew_it(engine: sa.Engine) -> None:
    id = make_operation(engine, make_action(engine), NOON)
    claimed(engine, id)
    update_operation(engine, id, heartbeat_at=database_now(-60.0))
    sweeper = Sweeper(LEASE, NO_ALERTS)

    at_the_start = tick(engine, None, sweeper).lost
    sweeper._trusted_from = 0.0

    assert (at_the_start, tick(engine, None, sweeper).lost) == (0, 1)


def test_what_waited_for_one_that_is_gone_is_sent_at_once(engine: sa.Engine) -> None:
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
    make_action(engine, since=NOON - 5 * MINUTE, policy=policy)

    assert [run_tick(engine, NOON).recorded for _ in range(3)] == [2, 2, 1]


def test_what_was_sent_is_not_sent_again_if_the_clock_goes_back_meanwhile(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.sweep.MOST_RESERVED", 1)
    clock = VirtualClock(engine, AT + 3 * HOUR)
    id = make_operation(engine, make_action(engine), AT)
    update_operation(engine, id, not_before=AT)
    sent: list[UUID] = []

    def send(engine: sa.Engine, messages: Sequence[Message]) -> Sent:
        assert not sent
        sent.extend(one.id for one in messages)
        clock.set(AT)
        act(engine, reserve.mark_sent, messages)
        return Sent(len(messages))

    _dispatch(engine, reserve.reserve_sendable, send)

    assert sent == [id]


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_two_that_sent_the_same_messages_in_other_orders_both_mark_them(engine: sa.Engine) -> None:
    action = make_action(engine)
    first, middle, last = sorted(make_operation(engine, action, NOON + n * HOUR) for n in range(3))

    def mark(ids: Sequence[UUID]) -> None:
        act(engine, reserve.mark_sent, [Message(id, 1, "tests", "quick") for id in ids])

    with ThreadPoolExecutor(2) as pool:
        with engine.begin() as holding:
            held = sa.select(operations.c.id).where(operations.c.id == middle)
            holding.execute(held.with_for_update())
            orders = ([first, middle, last], [last, middle, first])
            both = [pool.submit(mark, ids) for ids in orders]
            assert wait_for(lambda: locks_waited_for(engine) == 2, 20)
        for one in both:
            one.result()

    sent = sa.select(operations.c.sendings).order_by(operations.c.id)
    assert fetched(engine, sent).scalars().all() == [2, 2, 2]


def test_an_unexpected_error_while_sending_keeps_no_alert_back(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = make_operation(engine, make_action(engine), AT)
    update_operation(engine, id, recorded_at=database_now(-3600.0), cause=Cause.SCHEDULE)

    def breaks(*_: object) -> None:
        raise ValueError("of no row that anyone thought of")

    monkeypatch.setattr("scheduler.sweep.reserve_sendable", breaks)
    swept = Sweeper(LEASE, NO_ALERTS).sweep(engine, EVERYTHING, send=True)

    assert (swept.sent, swept.overdue) == (0, 1)


def make_ready(engine: sa.Engine, count: int) -> list[Message]:
    """Record operations that are sendable, the first one for the longest time."""
    action = make_action(engine, policy={"overlap": "allow"})
    ids = [make_operation(engine, action, AT + n * HOUR) for n in range(count)]
    for n, id in enumerate(ids):
        update_operation(engine, id, not_before=AT + n * HOUR)
    return [Message(id, 1, EXECUTE_QUICK, "quick") for id in ids]


def test_what_the_broker_took_before_it_broke_is_not_sent_again(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = make_ready(engine, 2)
    send_all = app._flush

    def breaks_after_one(chunk: Sequence[Message]) -> dict[str, str]:
        if chunk[0] != ready[0]:
            raise ConnectionError("reset by peer")
        return send_all(chunk)

    monkeypatch.setattr(app, "FLUSH_SIZE", 1)
    monkeypatch.setattr(app, "_flush", breaks_after_one)
    reserved = act(engine, reserve.reserve_sendable, 2)
    sent = send_reserved(engine, sorted(reserved, key=lambda one: one != ready[0]))

    assert sent.count == 1
    assert [row_of(engine, one.id)["state"] for one in ready] == ["queued", "pending"]
    again = act(engine, reserve.reserve_sendable, 2)
    assert [one.id for one in again] == [ready[1].id]


def test_what_an_end_releases_is_sent_in_its_order(engine: sa.Engine, broker: Broker) -> None:
    older, newer = make_ready(engine, 2)

    send_ended(engine, EndResult(OperationState.SUCCESS, [newer, older]))

    assert [id for id, _ in broker.messages("quick")] == [str(newer.id), str(older.id)]
