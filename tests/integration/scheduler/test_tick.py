"""A tick on real databases and a real broker: recorded once, sent once, nothing lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Event
from typing import Any

import pytest
import sqlalchemy as sa

from models.fingerprint import operation_id
from models.store.operations.take import Claim
from models.tables import actions
from scheduler.changes import change, editing
from tests.factories import (
    author,
    claimed,
    cursor_of,
    make_action,
    make_document,
    make_many,
    make_operation,
    rows_of,
    spans_of,
    spoil,
    update_operation,
)
from tests.servers import Broker
from tests.statements import executed
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, clock_of, fetched
from tests.virtual_clock import VirtualClock

SEVEN = datetime(2027, 1, 4, 6, 0, tzinfo=UTC)  # a Monday, 07:00 in Paris
WEEKLY = {"cron_rule": "0 7 * * 1", "timezone": "Europe/Paris"}


def test_an_occurrence_is_recorded_and_sent_under_the_computed_id(
    engine: sa.Engine, broker: Broker
) -> None:
    action = make_action(engine, name="weekly", when=WEEKLY, since=SEVEN - MINUTE)

    report = run_tick(engine, SEVEN + timedelta(seconds=30))

    expected = operation_id(action.uid, SEVEN)
    assert (report.recorded, report.sent) == (1, 1)
    row = rows_of(engine, action)[0]
    assert (row["id"], row["state"], row["queue"]) == (expected, "queued", "quick")
    assert row["triggerer"] == 'Scheduled action "weekly"'
    assert broker.messages("quick") == [(str(expected), 1)]


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_recording_locks_no_row_of_an_action(engine: sa.Engine) -> None:
    make_action(engine, name="weekly", when=WEEKLY, since=SEVEN - MINUTE)
    locks = sa.text("SELECT xmax::text FROM actions UNION ALL SELECT xmax::text FROM small_apps")
    before = fetched(engine, locks).scalars().all()

    assert run_tick(engine, SEVEN).recorded == 1

    # A lock writes the row, to its page and to the log of writes.
    assert fetched(engine, locks).scalars().all() == before


def test_with_the_broker_unreachable_it_stays_pending_and_a_later_tick_sends_it(
    engine: sa.Engine, broker: Broker
) -> None:
    action = make_action(engine, when=WEEKLY, since=SEVEN - MINUTE)

    broker.stop()
    try:
        first = run_tick(engine, SEVEN)
    finally:
        broker.start()
    waiting = rows_of(engine, action)[0]["state"]
    second = run_tick(engine, SEVEN + MINUTE)

    assert (first.recorded, first.sent, waiting) == (1, 0, "pending")
    assert first.broker_error is not None
    assert (second.recorded, second.sent) == (0, 1)
    assert rows_of(engine, action)[0]["state"] == "queued"
    assert len(broker.messages("quick")) == 1


def test_a_newer_operation_overtakes_an_unstarted_one(engine: sa.Engine) -> None:
    action = make_action(engine, since=SEVEN - MINUTE)

    run_tick(engine, SEVEN)
    run_tick(engine, SEVEN + MINUTE)

    rows = rows_of(engine, action)
    assert [(row["state"], row["reason"]) for row in rows] == [
        ("skipped", "overtaken by 2027-01-04T06:01:00Z: no worker listens to queue quick"),
        ("queued", None),
    ]


@pytest.mark.parametrize(
    ("policy", "triggerer", "state"),
    [
        ({}, "Scheduled action", "skipped"),
        ({"catch_up": "all"}, "Scheduled action", "queued"),
        ({"overlap": "queue"}, "Scheduled action", "queued"),
        ({}, "Backfill", "queued"),
    ],
    ids=["skip", "all", "queue", "requested"],
)
def test_an_occurrence_beside_a_running_one_is_skipped_when_it_is_recorded(
    engine: sa.Engine, broker: Broker, policy: dict[str, Any], triggerer: str, state: str
) -> None:
    action = make_action(engine, policy=policy, since=SEVEN - MINUTE)
    running = make_operation(engine, action, SEVEN - 30 * MINUTE, triggerer)
    assert isinstance(claimed(engine, running), Claim)

    report = run_tick(engine, SEVEN)

    row = rows_of(engine, action)[-1]
    is_skipped = state == "skipped"
    assert (row["state"], report.skipped) == (state, int(is_skipped))
    assert row["reason"] == (f"overlap: {running} was running" if is_skipped else None)
    assert len(broker.messages("quick")) == int(not is_skipped)


def test_catch_up_all_is_never_overtaken(engine: sa.Engine, broker: Broker) -> None:
    action = make_action(engine, policy={"catch_up": "all"}, since=SEVEN - 4 * MINUTE)

    run_tick(engine, SEVEN)
    run_tick(engine, SEVEN + MINUTE)

    assert [row["state"] for row in rows_of(engine, action)] == ["queued"] * 5
    assert len(broker.messages("quick")) == 5


def test_a_batch_ends_at_so_many_occurrences(
    engine: sa.Engine, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a batch after a long downtime would be a million rows."""
    monkeypatch.setattr("scheduler.batches.MOST_RECORDED", 50)
    policy = {"catch_up": "all", "look_back": "P1D", "overlap": "allow"}
    for number in range(20):
        make_action(engine, name=f"one {number}", policy=policy, since=SEVEN - 30 * MINUTE)

    with executed(engine) as seen:
        report = run_tick(engine, SEVEN)

    assert (report.decided, report.recorded) == (20, 20 * 30)
    assert sum(one.startswith("INSERT INTO operations") for one in seen) == 20 / 2
    assert len(broker.messages("quick")) == 20 * 30


def test_two_daemons_send_each_occurrence_once(engine: sa.Engine, broker: Broker) -> None:
    uids = make_many(engine, 60)
    now = datetime.now(UTC) + MINUTE  # noqa: TID251 - after every action was made

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(run_tick, engine, now, 5) for _ in range(2)]
    reports = [one.result() for one in both]

    sent = broker.messages("quick")
    assert sum(report.recorded for report in reports) == len(uids)
    assert len(sent) == len(set(sent)) == len(uids)


def test_a_row_broken_by_hand_is_quarantined_and_disturbs_no_other(engine: sa.Engine) -> None:
    broken = make_action(engine, name="broken", since=SEVEN - MINUTE)
    sound = make_action(engine, name="sound", since=SEVEN - MINUTE)
    act(engine, spoil, actions.c.uid == broken.uid, plan="{}")

    report = run_tick(engine, SEVEN)

    assert (report.quarantined, report.recorded) == (1, 1)
    assert [row["state"] for row in rows_of(engine, sound)] == ["queued"]
    assert cursor_of(engine, broken)["next_occurrence_at"] is None
    assert run_tick(engine, SEVEN + MINUTE).quarantined == 0


def test_a_clock_that_ran_ahead_is_undone(engine: sa.Engine) -> None:
    action = make_action(engine, since=SEVEN - MINUTE)
    run_tick(engine, SEVEN + timedelta(days=365))

    back = run_tick(engine, SEVEN)
    run_tick(engine, SEVEN + MINUTE)

    assert back.clock_set_back_s == timedelta(days=365).total_seconds()
    rows = [row for row in rows_of(engine, action) if row["occurrence_at"] <= SEVEN + MINUTE]
    assert [(row["occurrence_at"], row["state"]) for row in rows] == [
        (SEVEN, "skipped"),
        (SEVEN + MINUTE, "queued"),
    ]


def test_what_another_rule_ran_is_not_taken_off_what_is_missed(engine: sa.Engine) -> None:
    clock = VirtualClock(engine, SEVEN - MINUTE)
    make_action(engine, when={"cron_rule": "1-59/2 * * * *", "timezone": "UTC"})
    run_tick(engine, SEVEN + 20 * MINUTE)
    run_tick(engine, SEVEN)
    even = make_document(when={"cron_rule": "*/2 * * * *", "timezone": "UTC"})
    clock.set(SEVEN)
    change.apply_all(engine, [even], author())

    run_tick(engine, SEVEN + 60 * MINUTE)

    ((span, count),) = spans_of(engine)
    ends = [SEVEN + 2 * MINUTE, SEVEN + 38 * MINUTE]
    assert ([span["first_at"], span["last_at"]], count) == (ends, 19)


def test_a_tick_with_nothing_due_reports_nothing(engine: sa.Engine) -> None:
    assert run_tick(engine, SEVEN).figures() == {}


def test_a_manual_run_is_not_overtaken_by_an_earlier_occurrence(engine: sa.Engine) -> None:
    action = make_action(engine, since=SEVEN - MINUTE)
    manual_run = make_operation(engine, action, SEVEN + timedelta(seconds=20))

    run_tick(engine, SEVEN + timedelta(seconds=30))

    states = {row["id"]: row["state"] for row in rows_of(engine, action)}
    assert states[manual_run] != "skipped"


def test_no_action_overtakes_what_another_has_at_an_earlier_minute(engine: sa.Engine) -> None:
    rules = {"a": {"cron_rule": "*/2 * * * *"}, "b": {"cron_rule": "* * * * *"}}
    some = [make_action(engine, name=n, when=rules[n], since=SEVEN - MINUTE) for n in rules]

    run_tick(engine, SEVEN + MINUTE)

    newest = [rows_of(engine, one)[-1] for one in some]
    assert [row["occurrence_at"] for row in newest] == [SEVEN, SEVEN + MINUTE]
    assert {row["state"] for row in newest} == {"queued"}


def test_what_has_begun_is_not_overtaken(engine: sa.Engine) -> None:
    action = make_action(engine, since=SEVEN - MINUTE)
    run_tick(engine, SEVEN)
    first = rows_of(engine, action)[0]["id"]
    update_operation(engine, first, state="pending", attempt=2, first_started_at=SEVEN)

    run_tick(engine, SEVEN + MINUTE)

    assert [row["state"] for row in rows_of(engine, action)] == ["pending", "queued"]


def test_pausing_records_all_of_a_long_catch_up(engine: sa.Engine) -> None:
    policy = {"catch_up": "all", "look_back": "P3D"}
    now = clock_of(engine)
    action = make_action(engine, policy=policy, since=now - timedelta(minutes=2500))

    editing.set_active(engine, action.uid, active=False, author=author())

    assert 2499 <= len(rows_of(engine, action)) <= 2502


def test_a_queue_that_nobody_serves_stays_bounded(engine: sa.Engine) -> None:
    policy = {"overlap": "queue", "max_waiting": 2}
    action = make_action(engine, policy=policy, since=SEVEN - MINUTE)

    for minute in range(8):
        run_tick(engine, SEVEN + minute * MINUTE)

    states = [row["state"] for row in rows_of(engine, action)]
    assert states == ["skipped"] * 5 + ["queued"] * 3


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_ticks_and_changes_that_need_the_same_rows_all_end(engine: sa.Engine) -> None:
    """A tick overtakes what another one marks as sent, while a change decides it."""
    clock, names = VirtualClock(engine, SEVEN), [f"no {number}" for number in range(24)]
    whens = [{"cron_rule": rule, "timezone": "UTC"} for rule in ("* * * * *", "0 * * * *")]
    made = [make_action(engine, name=name, when=whens[0]) for name in names]
    random, is_over = Random(7), Event()

    def changes() -> None:
        for number in range(1, 21):
            when, some = random.choice(whens), random.sample(names, 12)
            change.apply_all(engine, [make_document(name=one, when=when) for one in some], author())
            clock.set(SEVEN + number * MINUTE)

    def ticks() -> None:
        while not is_over.is_set():
            run_tick(engine)

    def ends(act: Callable[[], None]) -> None:
        try:
            act()
        finally:
            is_over.set()

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(ends, act) for act in (changes, ticks, ticks)]
    for one in running:
        one.result()

    assert sum(len(rows_of(engine, action)) for action in made) > len(made)
