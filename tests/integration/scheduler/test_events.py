"""Event actions in the tick: every selected event has one outcome."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy as sa

from models.fingerprint import str_to_uuid
from models.store import key_values
from models.store.actions.cursors import lock
from models.store.actions.status import perhaps_unhealthy
from models.store.notices.alerting import NO_ALERTS
from models.tables import actions, events, group_members, groups, users
from scheduler.changes.change import apply_all
from scheduler.changes.editing import set_active
from scheduler.events import Watched
from scheduler.events.tick import EventTick
from scheduler.sweep import Sweeper
from scheduler.tick import Tick, TickReport, look, tick
from tests.factories import (
    DEFAULT_APP,
    author,
    cursor_of,
    make_action,
    make_document,
    rows_of,
    spans_of,
    spoil,
)
from tests.servers import Broker
from tests.ticks import DAY, MINUTE, run_tick
from tests.transactions import act, clock_of, execute
from tests.virtual_clock import VirtualClock

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
LONG_AGO = NOW - 400 * DAY
SEEN = {"on": "instance.user.last_seen"}
WEEK_AFTER = {"after": "instance.user.last_seen", "delay": "P7DT30S"}


def make_user(engine: sa.Engine, id: str, **values: Any) -> None:
    """Store a user who was made and activated long ago."""
    row = {"active": True, "created_at": LONG_AGO, "activated_at": LONG_AGO, "email": f"{id}@x.org"}
    execute(
        engine, sa.insert(users).values({**row, **values, "small_app_id": DEFAULT_APP.id, "id": id})
    )


def make_event(engine: sa.Engine, event: str, id: str, subject: str, at: datetime) -> None:
    execute(
        engine,
        sa.insert(events).values(
            small_app_id=DEFAULT_APP.id, event=event, id=id, subject=subject, occurred_at=at
        ),
    )


def decided_until(engine: sa.Engine, at: datetime) -> None:
    """Let all events be decided up to `at`."""
    act(engine, key_values.set_value, key_values.EVENTS_DECIDED, at.isoformat())


def told(rows: list[sa.RowMapping]) -> list[tuple[str, str]]:
    return [(row["subject"], row["state"]) for row in rows]


@pytest.mark.parametrize("event", ["created", "activated", "last_seen"])
def test_an_event_of_a_user_is_one_operation_about_that_user(
    engine: sa.Engine, broker: Broker, event: str
) -> None:
    action = make_action(engine, when={"on": f"instance.user.{event}"}, since=NOW - DAY)
    decided_until(engine, NOW - MINUTE)
    at = NOW - timedelta(seconds=20, microseconds=5)
    make_user(engine, "ann", **{f"{event}_at": at})
    make_user(engine, "ben")

    for minute in range(7):
        run_tick(engine, NOW + minute * MINUTE)

    (row,) = rows_of(engine, action)
    due = "2026-11-23T05:59:40Z"
    assert row["id"] == str_to_uuid(f"{action.uid} | {due} | ann")
    assert (row["subject"], row["event_at"], row["event_id"]) == ("ann", at, None)
    assert (row["overlap_key"], row["triggerer"]) == (None, 'Scheduled action "every minute"')
    assert broker.messages("quick") == [(str(row["id"]), 1)]


def test_two_events_of_one_user_with_ids_of_their_own_are_two_operations(engine: sa.Engine) -> None:
    action = make_action(engine, when={"on": "order.paid"}, since=NOW - DAY)
    decided_until(engine, NOW - MINUTE)
    make_user(engine, "ann")
    for id in ("17", "18"):
        make_event(engine, "order.paid", id, "ann", NOW)
    make_event(engine, "order.sent", "17", "ann", NOW)
    make_event(engine, "order.paid", "19", "nobody", NOW)

    run_tick(engine, NOW)

    rows = rows_of(engine, action)
    assert {(row["subject"], row["event_id"]) for row in rows} == {("ann", "17"), ("ann", "18")}
    assert {row["id"] for row in rows} == {
        str_to_uuid(f"{action.uid} | 2026-11-23T06:00:00Z | ann | {id}") for id in ("17", "18")
    }


def test_what_an_import_wrote_in_silence_raises_nothing(engine: sa.Engine) -> None:
    action = make_action(engine, when=SEEN, since=NOW - DAY)
    make_user(engine, "ann", last_seen_at=NOW, last_seen_silent=True)

    run_tick(engine, NOW)

    assert rows_of(engine, action) == []


def test_only_users_whom_the_recipients_select_count(engine: sa.Engine) -> None:
    """Which these are, `test_recipients` proves by values."""
    recipients = {"users": ["ann"], "groups": ["shop"]}
    action = make_action(engine, when=SEEN, since=NOW - DAY, recipients=recipients)
    decided_until(engine, NOW - MINUTE)
    execute(engine, sa.insert(groups).values(small_app_id=DEFAULT_APP.id, name="shop"))
    for user, is_active in (("ann", True), ("bob", True), ("off", False), ("other", True)):
        make_user(engine, user, last_seen_at=NOW, active=is_active)
        member = {"small_app_id": DEFAULT_APP.id, "group_name": "shop", "user_id": user}
        if user in {"bob", "off"}:
            execute(engine, sa.insert(group_members).values(member))

    run_tick(engine, NOW)

    assert {row["subject"] for row in rows_of(engine, action)} == {"ann", "bob"}


def test_after_a_downtime_the_late_ones_are_missed_and_counted(engine: sa.Engine) -> None:
    action = make_action(engine, when=SEEN, since=NOW - DAY)
    decided_until(engine, NOW - 60 * MINUTE)
    for number in range(30):
        make_user(engine, f"user {number:02}", last_seen_at=NOW - (number + 1) * MINUTE)

    first = run_tick(engine, NOW)
    again = run_tick(engine, NOW + MINUTE)

    rows = rows_of(engine, action)
    states = [row["state"] for row in rows]
    ((span, count),) = spans_of(engine)
    assert states == ["missed"] * 10 + ["queued"] * 4
    assert {row["reason"] for row in rows} == {"too late", None}
    assert (count, span["reason"]) == (16, "too late")
    assert (span["first_at"], span["last_at"]) == (NOW - 30 * MINUTE, NOW - 15 * MINUTE)
    assert (first.recorded, first.missed) == (4, 26)
    assert (again.recorded, again.missed) == (0, 0)


def test_a_broken_event_action_is_quarantined_and_the_others_go_on(engine: sa.Engine) -> None:
    broken = make_action(engine, name="broken", when=WEEK_AFTER, since=NOW - DAY)
    action = make_action(engine, when=SEEN, since=NOW - DAY)
    make_user(engine, "ann", last_seen_at=NOW)
    act(engine, spoil, actions.c.uid == broken.uid, plan="{}")
    decided_until(engine, NOW - MINUTE)

    report = run_tick(engine, NOW)

    assert report.quarantined == 1
    assert told(rows_of(engine, action)) == [("ann", "queued")]
    (one,) = act(engine, perhaps_unhealthy)
    assert one["uid"] == broken.uid


def test_two_daemons_at_once_record_each_event_once(engine: sa.Engine, broker: Broker) -> None:
    action = make_action(engine, when=SEEN, since=NOW - DAY)
    decided_until(engine, NOW - 60 * MINUTE)
    for number in range(200):
        make_user(engine, f"{number:03}", last_seen_at=NOW - number * timedelta(seconds=15))
    together = Barrier(2)

    def daemon(_: int) -> TickReport:
        together.wait()
        return run_tick(engine, NOW)

    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(daemon, range(2)))

    run_tick(engine, NOW)
    rows = rows_of(engine, action)
    due = [row for row in rows if row["state"] == "queued"]
    assert len(due) == 20
    assert len(broker.messages("quick")) == 20
    assert [count for _, count in spans_of(engine)] == [200 - 20 - 10]
    assert sum(report.recorded for report in reports) <= 20


def test_a_clock_that_went_back_withdraws_what_it_took_for_missed(engine: sa.Engine) -> None:
    action = make_action(engine, when=WEEK_AFTER, since=NOW - DAY)
    decided_until(engine, NOW - MINUTE)
    for number in range(20):
        seen = NOW - 7 * DAY - timedelta(seconds=30) + (number + 1) * MINUTE
        make_user(engine, f"{number:02}", last_seen_at=seen)
    act(engine, key_values.set_value, key_values.LAST_NOW, NOW.isoformat())

    ahead = run_tick(engine, NOW + 2 * DAY)
    back = run_tick(engine, NOW)
    nothing = told(rows_of(engine, action))
    for minute in range(1, 21):
        run_tick(engine, NOW + minute * MINUTE)

    assert spans_of(engine) == []
    assert (ahead.missed, back.clock_set_back_s, nothing) == (20, 2 * 86_400, [])
    assert told(rows_of(engine, action)) == [(f"{n:02}", "queued") for n in range(20)]


def test_events_of_a_tick_that_began_by_a_wrong_clock_are_left_to_the_right_one(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are late by the wrong clock, and the downtime before it is decided by the right one."""
    clock = VirtualClock(engine, NOW - DAY)
    action = make_action(engine, when=SEEN, since=NOW - DAY)
    decided_until(engine, NOW - DAY)
    make_user(engine, "ann", last_seen_at=NOW - 60 * MINUTE)
    decide, sweeper = EventTick._decide, Sweeper(timedelta(seconds=45), NO_ALERTS)
    clock.set(NOW + DAY)
    found = look(engine, None, sweeper)
    begun = Tick(engine, TickReport(found.now))

    def another_daemon_is_first(
        events: EventTick, connection: sa.Connection, watched: Sequence[Watched]
    ) -> None:
        clock.set(NOW)
        assert look(engine, None, sweeper).set_back_s == 86_400
        decide(events, connection, watched)

    with monkeypatch.context() as patch:
        patch.setattr(EventTick, "_decide", another_daemon_is_first)
        begun.decide_events()
    decided = act(engine, key_values.instant_value, key_values.EVENTS_DECIDED)
    right = tick(engine, None, sweeper)

    assert (begun.report.missed, begun.report.events_error, decided) == (0, None, NOW - DAY)
    assert right.missed == 1
    assert [row["state"] for row in rows_of(engine, action)] == ["missed"]


def test_a_tick_that_dies_before_its_end_is_made_up_for(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the note of how far the deciding came: the next tick decides it all once more."""
    action = make_action(engine, when=SEEN, since=NOW - DAY)
    decided_until(engine, NOW - 60 * MINUTE)
    make_user(engine, "late", last_seen_at=NOW - 30 * MINUTE)
    make_user(engine, "ann", last_seen_at=NOW)

    move = key_values.move_value

    def die(connection: sa.Connection, key: str, seen: str | None, value: str) -> bool:
        if key == key_values.EVENTS_DECIDED:
            raise KeyboardInterrupt
        return move(connection, key, seen, value)

    with monkeypatch.context() as patch:
        patch.setattr(key_values, "move_value", die)
        with pytest.raises(KeyboardInterrupt):
            run_tick(engine, NOW)
    run_tick(engine, NOW + 30 * MINUTE)

    assert told(rows_of(engine, action)) == [("late", "missed"), ("ann", "queued")]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_any_split_into_ticks_records_what_a_plain_model_says(engine: sa.Engine) -> None:
    """Users are seen, and reported late, at random; ticks come at random within the look-back."""
    whens = [
        {"on": "instance.user.last_seen"},
        {"after": "instance.user.last_seen", "delay": "PT7M"},
        {"after": "instance.user.created", "delay": "PT11M30S"},
    ]
    made = [make_action(engine, name=str(n), when=when, since=NOW) for n, when in enumerate(whens)]
    random = Random(7)
    expected: set[tuple[int, str, datetime]] = set()
    anchors: dict[str, datetime] = {}
    at, number = NOW, 0
    while at < NOW + 60 * MINUTE:
        at += timedelta(seconds=random.randrange(1, 240))
        for _ in range(random.randrange(4)):
            id = f"user {number}"
            happened = at - timedelta(seconds=random.randrange(0, 60))
            anchors[id], number = happened, number + 1
            make_user(engine, id, last_seen_at=happened, created_at=happened)
            for action, delay_s in enumerate((0, 420, 690)):
                expected.add((action, id, happened + timedelta(seconds=delay_s)))
        run_tick(engine, at)
    for _ in range(15):
        at += timedelta(seconds=random.randrange(1, 240))
        run_tick(engine, at)

    found = {
        (number, row["subject"], row["occurrence_at"])
        for number, action in enumerate(made)
        for row in rows_of(engine, action)
    }
    assert found == {one for one in expected if NOW < one[2] <= at}


# A change decides the old revision up to now; changed occurrences begin again.


@pytest.fixture
def now(engine: sa.Engine) -> datetime:
    """The database's clock: changes decide by it."""
    return clock_of(engine)


def test_an_edit_of_when_decides_the_old_and_begins_anew(engine: sa.Engine, now: datetime) -> None:
    action = make_action(engine, when=SEEN, since=now - DAY)
    decided_until(engine, now - MINUTE)
    at = now - timedelta(seconds=20)
    make_user(engine, "ann", last_seen_at=at)
    make_user(engine, "ben", activated_at=at)

    apply_all(engine, [make_document(when={"on": "instance.user.activated"})], author())
    make_user(engine, "cleo", activated_at=now + timedelta(seconds=20))
    run_tick(engine, now + MINUTE)

    rows = rows_of(engine, action)
    assert [(row["subject"], row["revision"]) for row in rows] == [("ann", 1), ("cleo", 2)]


def test_a_change_of_its_recipients_runs_none_of_the_past(engine: sa.Engine, now: datetime) -> None:
    action = make_action(engine, when=SEEN, since=now - DAY)
    make_user(engine, "off", last_seen_at=now - timedelta(seconds=20), active=False)
    everybody = {"include_inactive_users": True}

    apply_all(engine, [make_document(when=SEEN, recipients=everybody)], author())
    run_tick(engine, now + MINUTE)

    assert rows_of(engine, action) == []


def test_what_happens_during_a_pause_is_never_caught_up(engine: sa.Engine, now: datetime) -> None:
    action = make_action(engine, when=SEEN, since=now - DAY)
    decided_until(engine, now - 2 * MINUTE)
    make_user(engine, "before", last_seen_at=now - MINUTE)
    set_active(engine, action.uid, active=False, author=author())
    # What is due rounds up to the next second, which may be after the pause.
    make_user(engine, "during", last_seen_at=now.replace(microsecond=0))
    run_tick(engine, now + timedelta(seconds=1))
    set_active(engine, action.uid, active=True, author=author())
    make_user(engine, "after", last_seen_at=now + timedelta(seconds=30))

    run_tick(engine, now + MINUTE)

    assert [row["subject"] for row in rows_of(engine, action)] == ["before", "after"]


def test_what_is_too_late_at_an_edit_is_named_once(engine: sa.Engine, now: datetime) -> None:
    """No daemon ran; the edit ends the old revision, or hands its past to the next."""
    edits = {
        "going on": make_document(name="going on", when=SEEN, description="other"),
        "anew": make_document(name="anew", when={"on": "order.paid"}),
    }
    made = [make_action(engine, name=name, when=SEEN, since=now - DAY) for name in edits]
    decided_until(engine, now - 60 * MINUTE)
    for number in range(20):
        make_user(engine, f"{number:02}", last_seen_at=now - 30 * MINUTE)

    apply_all(engine, list(edits.values()), author())
    run_tick(engine, now + MINUTE)

    assert [len(rows_of(engine, action)) for action in made] == [10, 10]
    counts = {span["action_uid"]: count for span, count in spans_of(engine)}
    assert counts == {action.uid: 10 for action in made}


def test_a_clock_rule_becomes_an_event_and_back(engine: sa.Engine, now: datetime) -> None:
    action = make_action(engine, since=now)
    apply_all(engine, [make_document(when=SEEN)], author())
    at_event = cursor_of(engine, action)["next_occurrence_at"]
    run_tick(engine, now + timedelta(seconds=1))
    filed = cursor_of(engine, action)["next_occurrence_at"]
    apply_all(engine, [make_document()], author())
    run_tick(engine, now + MINUTE)

    assert (at_event, filed) == (None, None)
    assert cursor_of(engine, action)["next_occurrence_at"] is not None
    assert {row["subject"] for row in rows_of(engine, action)} <= {None}


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_an_action_that_somebody_is_changing_is_decided_afterwards(engine: sa.Engine) -> None:
    """PostgreSQL: rows are locked one by one. Nothing is missed, however long it takes."""
    action = make_action(engine, when=SEEN, since=NOW - DAY)
    other = make_action(engine, name="other", when=SEEN, since=NOW - DAY)
    decided_until(engine, NOW - MINUTE)
    make_user(engine, "ann", last_seen_at=NOW)

    with engine.begin() as connection:
        lock(connection, action.uid)
        run_tick(engine, NOW)
        during = told(rows_of(engine, action))
    run_tick(engine, NOW + 30 * MINUTE)

    assert (during, told(rows_of(engine, action))) == ([], [("ann", "missed")])
    assert told(rows_of(engine, other)) == [("ann", "queued")]


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_what_is_late_waits_for_whoever_changes_its_action(engine: sa.Engine) -> None:
    """A change records what its old revision missed: two records would count it twice."""
    names = ("changed", "other")
    made = [make_action(engine, name=name, when=SEEN, since=NOW - DAY) for name in names]
    decided_until(engine, NOW - 120 * MINUTE)
    for number in range(15):
        make_user(engine, f"{number:02}", last_seen_at=NOW - 30 * MINUTE)

    with engine.begin() as connection:
        lock(connection, made[0].uid)
        during = run_tick(engine, NOW).missed
    after = run_tick(engine, NOW + MINUTE).missed

    assert (during, after, [count for _, count in spans_of(engine)]) == (0, 30, [5, 5])
