"""Event actions in the tick: who is due, once, with an outcome for every event that counts."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from models.store import ticks
from models.tables import events, group_members, groups, missed_spans, users
from runtime.database import reading
from scheduler.fingerprint import str_to_uuid
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tests.factories import DEFAULT_APP, make_action, rows_of
from tests.servers import Broker

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
LONG_AGO = NOW - 400 * DAY
WEEK_AFTER = {"after": "instance.user.last_seen", "delay": "P7DT30S"}


def run_tick(engine: sa.Engine, now: datetime) -> TickReport:
    return tick(engine, now, Sweeper(timedelta(seconds=45)))


def make_user(engine: sa.Engine, id: str, **values: Any) -> None:
    """Store a user who was made and activated long ago."""
    row = {"active": True, "created_at": LONG_AGO, "activated_at": LONG_AGO, "email": f"{id}@x.org"}
    with engine.begin() as connection:
        connection.execute(
            sa.insert(users).values({**row, **values, "small_app_id": DEFAULT_APP.id, "id": id})
        )


def make_event(engine: sa.Engine, event: str, id: str, subject: str, at: datetime) -> None:
    with engine.begin() as connection:
        connection.execute(
            sa.insert(events).values(
                small_app_id=DEFAULT_APP.id, event=event, id=id, subject=subject, occurred_at=at
            )
        )


def update_user(engine: sa.Engine, id: str, **values: Any) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(users).where(users.c.id == id).values(**values))


def decided_until(engine: sa.Engine, at: datetime) -> None:
    """Let all events be decided up to `at`."""
    with engine.begin() as connection:
        ticks.set_fact(connection, ticks.EVENTS_DECIDED, at.isoformat())


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


def test_after_an_event_it_is_due_when_the_delay_is_over(engine: sa.Engine) -> None:
    action = make_action(engine, when=WEEK_AFTER, since=NOW - DAY)
    decided_until(engine, NOW - MINUTE)
    make_user(engine, "ann", last_seen_at=NOW - 7 * DAY - timedelta(seconds=30))
    make_user(engine, "ben", last_seen_at=NOW - 7 * DAY - timedelta(seconds=29))

    run_tick(engine, NOW)
    before = told(rows_of(engine, action))
    run_tick(engine, NOW + MINUTE)

    assert before == [("ann", "queued")]
    assert told(rows_of(engine, action)) == [("ann", "queued"), ("ben", "queued")]


def test_a_delay_of_months_is_reckoned_on_the_wall(engine: sa.Engine) -> None:
    when = {"after": "instance.user.activated", "delay": "P1M", "timezone": "Europe/Paris"}
    action = make_action(engine, when=when, since=NOW - 10 * DAY)
    at = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
    for day in (29, 30, 31):
        activated = datetime(2026, 10, day, 9, 0, tzinfo=UTC)
        make_user(engine, f"on {day}", activated_at=activated)
    decided_until(engine, at - MINUTE)

    run_tick(engine, at)

    assert [row["subject"] for row in rows_of(engine, action)] == ["on 30", "on 31"]


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
    action = make_action(engine, when={"on": "instance.user.last_seen"}, since=NOW - DAY)
    make_user(engine, "ann", last_seen_at=NOW, last_seen_silent=True)

    run_tick(engine, NOW)

    assert rows_of(engine, action) == []


@pytest.mark.parametrize(
    ("recipients", "kept"),
    [
        pytest.param(None, {"ann", "bob"}, id="default"),
        pytest.param({"include_inactive_users": True}, {"ann", "bob", "off"}, id="inactive_too"),
        pytest.param({"only_inactivated_users": True}, {"new"}, id="only_inactivated"),
        pytest.param({"users": ["ann"], "groups": ["shop"]}, {"ann", "bob"}, id="named"),
        pytest.param({"users": ["off", "ann"]}, {"ann"}, id="named_and_active"),
        pytest.param({"groups": ["all"]}, {"ann", "bob"}, id="all"),
        pytest.param({"groups": ["shop"]}, {"bob"}, id="group"),
    ],
)
def test_the_filter_says_which_subjects_count(
    engine: sa.Engine, recipients: Mapping[str, Any] | None, kept: set[str]
) -> None:
    given = {} if recipients is None else {"recipients": recipients}
    action = make_action(engine, when={"on": "instance.user.last_seen"}, since=NOW - DAY, **given)
    decided_until(engine, NOW - MINUTE)
    make_user(engine, "ann", last_seen_at=NOW)
    make_user(engine, "bob", last_seen_at=NOW)
    make_user(engine, "off", last_seen_at=NOW, active=False)
    make_user(engine, "new", last_seen_at=NOW, activated_at=None)
    with engine.begin() as connection:
        app = DEFAULT_APP.id
        connection.execute(sa.insert(groups).values(small_app_id=app, name="shop"))
        for user in ("bob", "off", "new"):
            member = {"small_app_id": app, "group_name": "shop", "user_id": user}
            connection.execute(sa.insert(group_members).values(member))

    run_tick(engine, NOW)

    assert {row["subject"] for row in rows_of(engine, action)} == kept


def test_after_a_downtime_the_late_ones_are_missed_and_counted(engine: sa.Engine) -> None:
    action = make_action(engine, when={"on": "instance.user.last_seen"}, since=NOW - DAY)
    decided_until(engine, NOW - 60 * MINUTE)
    for number in range(30):
        make_user(engine, f"user {number:02}", last_seen_at=NOW - (number + 1) * MINUTE)

    first = run_tick(engine, NOW)
    again = run_tick(engine, NOW + MINUTE)

    rows = rows_of(engine, action)
    states = [row["state"] for row in rows]
    with reading(engine) as connection:
        (span,) = connection.execute(sa.select(missed_spans)).mappings()
    assert states == ["missed"] * 10 + ["queued"] * 4
    assert {row["reason"] for row in rows} == {"too late", None}
    assert (span["count"], span["reason"]) == (16, "too late")
    assert (span["first_at"], span["last_at"]) == (NOW - 30 * MINUTE, NOW - 15 * MINUTE)
    assert (first.recorded, first.missed) == (4, 26)
    assert (again.recorded, again.missed) == (0, 0)
