"""Missed occurrences are told with their cause: once for an action and a downtime."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from models.sql import database_now
from models.store.notices import missed
from models.store.notices.alerting import NO_ALERTS
from models.tables import action_state, findings, notices
from runtime.config import load_settings
from runtime.sections import AlertSettings
from scheduler.changes import Change, change
from scheduler.changes.change import create_all
from services.verdict import assess
from tests.factories import author, make_action, make_document, rows_of, set_back
from tests.integration.scheduler.test_events import make_event, make_user
from tests.ticks import DAY, HOUR, MINUTE, run_tick
from tests.transactions import act, clock_of, execute, fetched

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}
ANN = {"mail": "ann@example.com"}
BOB = {"mail": "bob@example.com"}
DOWN = "no daemon ticked from 2027-01-04T12:00:00Z to 2027-01-04T17:00:12Z (5 h)"
BACK = NOON + 5 * HOUR + timedelta(seconds=12)


ADMINS = AlertSettings(mail=("ops@example.com",))


def owed(engine: sa.Engine, alerts: AlertSettings = NO_ALERTS) -> list[dict[str, Any]]:
    """Return the notices that exist half a minute later."""
    execute(engine, sa.update(findings).values(began_at=database_now(-60.0)))
    act(engine, missed.tell, alerts)
    query = sa.select(notices).order_by(notices.c.id)
    return [dict(row) for row in fetched(engine, query).mappings()]


def told(engine: sa.Engine, alerts: AlertSettings = NO_ALERTS) -> list[tuple[str, str | None, int]]:
    """Return to whom each notice goes, about which action, and how many occurrences it names."""
    return sorted(
        (one["target"]["to"], one["payload"].get("action"), one["payload"]["missed"])
        for one in owed(engine, alerts)
    )


def make_hourly(
    engine: sa.Engine, count: int, since: datetime, name: str = "a", **its: Any
) -> None:
    documents = [make_document(name=f"{name} {n}", when=HOURLY, **its) for n in range(count)]
    for one in create_all(engine, documents, author()):
        set_back(engine, one.uid, since)


def slept(engine: sa.Engine, **changes: Any) -> Change:
    """Return an action that was due while no daemon ticked for five hours."""
    run_tick(engine, NOON)
    document = {"when": HOURLY, "hooks": {"on_failure": [ANN]}, **changes}
    action = make_action(engine, since=NOON, **document)
    run_tick(engine, BACK)
    return action


def test_a_notice_says_what_was_missed_the_cause_and_what_ran_instead(engine: sa.Engine) -> None:
    action = slept(engine)

    (one,) = owed(engine)
    assert one["action_uid"] == action.uid
    assert one["state"] == "owed"
    (found,) = one["payload"].pop("findings")
    assert found["text"] == f"every minute missed 4 occurrences: {DOWN}"
    assert one["payload"] == {
        "kind": "finding_began", "small_app": "default", "action": action.name,
        "action_uid": str(action.uid), "reason": DOWN, "event": None,
        "missed": 4, "first_at": "2027-01-04T13:00:00Z", "last_at": "2027-01-04T16:00:00Z",
        "ran_instead_at": "2027-01-04T17:00:00Z",
    }  # fmt: skip


def test_each_missed_operation_keeps_the_cause(engine: sa.Engine) -> None:
    action = slept(engine, policy={"look_back": "PT2H"})

    reasons = [(row["state"], row["reason"]) for row in rows_of(engine, action)]
    overtaken = f"overtaken by 2027-01-04T17:00:00Z: {DOWN}"
    missed = [("missed", DOWN)] * 3 + [("missed", overtaken)]
    assert reasons == [*missed, ("queued", None)]


def test_the_verdict_names_the_cause(engine: sa.Engine) -> None:
    now = clock_of(engine).replace(microsecond=0)
    run_tick(engine, now - 5 * HOUR)
    every = {"every": "PT1H", "starting_at": (now - DAY).isoformat()}
    action = make_action(engine, when=every, policy={"look_back": "PT1M"}, since=now - 5 * HOUR)
    success = {"last_state": "success", "last_success_at": now - DAY, "last_run_at": now - DAY}
    its = {"action_uid": action.uid, "subject": "", **success}
    execute(engine, sa.insert(action_state).values(its))
    run_tick(engine, now - 5 * MINUTE)

    found = act(engine, assess, load_settings()).verdict.findings
    (text,) = (one.text for one in found if one.kind == "action_missed")
    assert "did not run: no daemon ticked from " in text


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        ({"on_failure": [ANN]}, ["ann@example.com", "ops@example.com"]),
        ({"on_failure": [ANN], "on_missed": [BOB]}, ["bob@example.com", "ops@example.com"]),
        ({"on_failure": [ANN], "on_missed": []}, ["ops@example.com"]),
        ({}, ["ops@example.com"]),
    ],
)
def test_the_receivers_of_missed_hear_of_it_and_the_admins(
    engine: sa.Engine, hooks: dict[str, Any], expected: list[str]
) -> None:
    slept(engine, hooks=hooks)

    assert [to for to, *_ in told(engine, ADMINS)] == expected


def test_a_regular_tick_and_a_short_pause_tell_nothing(engine: sa.Engine) -> None:
    run_tick(engine, NOON)
    make_action(engine, hooks={"on_failure": [ANN]}, since=NOON)

    for minutes in (1, 3):
        run_tick(engine, NOON + minutes * MINUTE)

    assert owed(engine) == []


def test_a_downtime_seen_over_several_ticks_is_told_once(engine: sa.Engine) -> None:
    all_of_them = {"catch_up": "all", "look_back": "P1D"}
    run_tick(engine, NOON - 48 * HOUR)
    hooks = {"on_failure": [ANN]}
    make_action(engine, policy=all_of_them, hooks=hooks, since=NOON - 48 * HOUR)

    for minutes in range(4):
        run_tick(engine, NOON + minutes * MINUTE)

    assert told(engine) == [("ann@example.com", "every minute", 24 * 60)]


def test_ten_actions_are_told_singly_and_eleven_in_one_digest(engine: sa.Engine) -> None:
    run_tick(engine, NOON)
    make_hourly(engine, 10, NOON)
    run_tick(engine, BACK)
    singly = told(engine, ADMINS)
    make_hourly(engine, 11, BACK, "b")
    run_tick(engine, BACK + 5 * HOUR)

    both = owed(engine, ADMINS)
    digests = [one for one in both if one["action_uid"] is None]
    assert len(singly) == 10
    assert len(both) == 11
    assert [one["payload"]["actions"] for one in digests] == [21]


def test_what_a_killed_daemon_left_is_counted_in_the_same_digest(engine: sa.Engine) -> None:
    run_tick(engine, NOON)
    make_hourly(engine, 11, NOON)
    run_tick(engine, BACK)
    make_hourly(engine, 1, NOON, "undecided")

    run_tick(engine, BACK + MINUTE)

    (one,) = owed(engine, ADMINS)
    assert (one["payload"]["actions"], one["payload"]["missed"]) == (12, 48)


def test_without_admins_only_ten_actions_are_told(engine: sa.Engine) -> None:
    run_tick(engine, NOON)
    make_hourly(engine, 30, NOON, hooks={"on_failure": [ANN]})

    run_tick(engine, BACK)

    assert len(owed(engine)) == 10


def test_a_change_while_no_daemon_ticks_tells_what_it_found_missed(engine: sa.Engine) -> None:
    now = clock_of(engine)
    run_tick(engine, now - 2 * HOUR)
    hooks = {"on_failure": [ANN]}
    make_action(engine, hooks=hooks, since=now - 2 * HOUR)

    change.apply_all(engine, [make_document(when=HOURLY, hooks=hooks)], author())

    (one,) = owed(engine)
    assert one["payload"]["reason"].startswith("no daemon ticked from ")
    assert one["payload"]["missed"] > 100


def test_missed_users_of_an_event_action_are_told_in_one_notice(engine: sa.Engine) -> None:
    run_tick(engine, NOON)
    hooks = {"on_failure": [ANN]}
    action = make_action(engine, when={"on": "signed_up"}, hooks=hooks, since=NOON)
    run_tick(engine, NOON + MINUTE)
    for number in range(1, 13):
        user = f"user {number:02}"
        make_user(engine, user)
        make_event(engine, "signed_up", user, user, NOON + number * 10 * MINUTE)

    for minutes in (0, 1):
        run_tick(engine, BACK + minutes * MINUTE)

    (one,) = owed(engine)
    assert one["action_uid"] == action.uid
    assert one["payload"]["event"] == "signed_up"
    assert one["payload"]["missed"] == 12
    assert {row["reason"] for row in rows_of(engine, action)} == {
        "no daemon ticked from 2027-01-04T12:01:00Z to 2027-01-04T17:00:12Z (4 h 59 min)"
    }


def test_quiet_hours_hold_it_back(engine: sa.Engine) -> None:
    now = clock_of(engine)
    hours = f"{now - HOUR:%H:%M}-{now + 2 * HOUR:%H:%M}"

    slept(engine)

    (one,) = owed(engine, AlertSettings(quiet_hours=hours))
    assert now + HOUR < one["not_before"] < now + 3 * HOUR
