from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from models.action.document import load_action, plan_of, stored_document
from models.action.event_rules import AfterEventModel, EventRule, OnEventModel
from models.action.intervals import FromEndModel
from models.action.rules import CronModel, DueDateModel
from models.action.when import WhenModel
from models.fingerprint import drawn_offset, jitter_offset
from models.parsing import Reading
from models.values.durations import format_span
from scheduler.changes.cycles import _remedy, cycle
from tests.factories import STEPS, make_rule
from tests.tables import table
from tests.ticks import DAY, HOUR, MINUTE, SECOND
from tests.unit.models.action.minimal import NOW, action, parse

PARIS = Reading(default_zone="Europe/Paris", created_at=NOW)
REFRESH = {"action": "refresh"}


def read(document: object) -> WhenModel:
    return WhenModel.model_validate(document, context=PARIS)


def test_a_rule_is_normalised_for_the_tick_and_stored_as_written() -> None:
    when = read({"cron_rule": "@Daily", "timezone": "utc"})

    assert when.resolved == (CronModel(cron_rule="0 0 * * *", timezone="UTC"),)
    assert when.model_dump(mode="json") == {"cron_rule": "@Daily", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("document", "hour"),
    [
        pytest.param({"due_date": "2027-01-01T08:00"}, 7, id="app_zone"),
        pytest.param({"due_date": "2027-01-01T08:00", "timezone": "UTC"}, 8, id="own_zone"),
        pytest.param(
            {"due_date": "2027-01-01T08:00Z", "timezone": "Asia/Tokyo"}, 8, id="offset_before_zone"
        ),
    ],
)
def test_a_due_date_is_read_in_its_zone(document: object, hour: int) -> None:
    (rule,) = read(document).resolved

    assert isinstance(rule, DueDateModel)
    assert (rule.due_at, rule.look_back) == (datetime(2027, 1, 1, hour, tzinfo=UTC), DAY)


def test_a_zone_is_stored_only_with_a_due_date_that_needs_it() -> None:
    with_offset: Any = read({"due_date": "2027-01-01T08:00Z"}).model_dump(mode="json")
    without: Any = read({"due_date": "2027-01-01T08:00"}).model_dump(mode="json")

    assert with_offset == {"due_date": "2027-01-01T08:00Z"}
    assert without == {"due_date": "2027-01-01T08:00", "timezone": "Europe/Paris"}


def test_a_list_is_a_union_in_its_order() -> None:
    cron: Any = {"cron_rule": "0 7 * * *", "timezone": "UTC"}
    document: Any = [{"due_date": "2027-01-01T08:00Z"}, cron]
    when = read(document)

    assert [type(rule) for rule in when.rules] == [DueDateModel, CronModel]
    assert when.model_dump(mode="json") == document
    alone: Any = read([cron]).model_dump(mode="json")
    assert alone == [cron]


def test_a_list_has_at_most_a_hundred_entries() -> None:
    with pytest.raises(ValidationError, match="at most 100"):
        read([{"cron_rule": "* * * * *"}] * 101)


@pytest.mark.parametrize("tick_s", [5, 60])
def test_an_interval_is_at_least_the_tick_of_the_daemon(tick_s: int) -> None:
    assert parse(action(when={"every": tick_s}), tick=tick_s * SECOND)
    with pytest.raises(Exception, match="a tick"):
        parse(action(when={"every": tick_s - 1}), tick=tick_s * SECOND)


@pytest.mark.parametrize(
    ("starting_at", "zone", "expected"),
    table(__file__, "an_interval_begins_at_a_time_of_its_own_zone"),
)
def test_an_interval_begins_at_a_time_of_its_own_zone(
    starting_at: str, zone: str | None, expected: str
) -> None:
    when = {"every": "P1D", "starting_at": starting_at} | ({"timezone": zone} if zone else {})

    stored = stored_document(parse(action(when=when), default_zone="Asia/Tokyo"))["when"]

    assert stored == {**when, "starting_at": expected}
    assert stored_document(parse(action(when=stored)))["when"] == stored


@pytest.mark.parametrize("event", ["instance.user.created", "order.paid"])
def test_an_action_may_be_on_an_event(event: str) -> None:
    when = read({"on": event})

    assert when.is_event
    assert [event] == [rule.event for rule in when.rules if isinstance(rule, OnEventModel)]
    (rule,) = when.resolved
    assert isinstance(rule, EventRule)
    assert rule.lag == timedelta(0)


def test_the_second_example_is_parsed() -> None:
    document: Any = {"after": "instance.user.last_seen", "delay": "P7DT30S"}
    when = read(document)
    (rule,) = when.rules

    assert isinstance(rule, AfterEventModel)
    assert (rule.event, rule.lag) == ("instance.user.last_seen", 7 * DAY + 30 * SECOND)
    assert when.model_dump(mode="json") == document


def test_an_interval_from_the_end_has_at_most_one_instant_and_says_so() -> None:
    rule = make_rule(every="PT10M", **{"from": "end"}, starting_at="2027-01-01T00:00:00Z")
    assert isinstance(rule, FromEndModel)
    since = datetime(2027, 2, 1, tzinfo=UTC)
    ended_at = since + timedelta(microseconds=1)

    def due(rule: FromEndModel) -> datetime | None:
        return rule.schedule(UUID(int=1)).next(datetime(2026, 1, 1, tzinfo=UTC))

    assert due(rule) is None
    assert due(rule.from_last_end(since, None)) == since + SECOND
    assert due(rule.from_last_end(since, ended_at)) == since + SECOND + 10 * MINUTE
    assert due(rule.from_last_end(since - 99 * DAY, None)) == rule.starting_at
    assert rule.words("UTC") == "10 minutes after the last run ended, first 2027-01-01T00:00:00Z"


@pytest.mark.parametrize("each", [False, True])
def test_jitter_moves_what_is_counted_from_the_end(each: bool) -> None:
    uid, spread, since = UUID(int=1), 5 * MINUTE, datetime(2027, 2, 1, tzinfo=UTC)
    keys = {"every": "PT10M", "from": "end", "jitter": "PT5M", "jitter_each": each}
    rule = make_rule(**keys)
    assert isinstance(rule, FromEndModel)
    named = since + HOUR + 10 * MINUTE
    offset = drawn_offset(uid, named, spread) if each else jitter_offset(uid, spread)

    counted = rule.from_last_end(since, since + HOUR)

    assert counted.schedule(uid).next(since) == named + offset


@pytest.mark.parametrize(
    ("when", "ends", "delay"),
    [
        pytest.param({"after": REFRESH}, ("success",), "PT0S", id="success_at_once"),
        pytest.param({"on": {**REFRESH, "ends": "failed"}}, ("failed",), "PT0S", id="on"),
        pytest.param(
            {"after": {**REFRESH, "ends": ["success", "partial"]}, "delay": "PT1H"},
            ("success", "partial"),
            "PT1H",
            id="delay",
        ),
    ],
)
def test_the_end_of_an_action_is_an_event(when: Any, ends: tuple[str, ...], delay: str) -> None:
    model = parse(action(when=when))
    trigger = plan_of(model).on_event

    assert trigger is not None
    assert (trigger.event, trigger.watched) == ("action refresh", "refresh")
    assert (trigger.ends, format_span(trigger.lag)) == (ends, delay)
    document = stored_document(model)
    assert document["when"] == ({"on": {**REFRESH, "ends": [*ends]}} if "on" in when else when)
    assert plan_of(load_action(document, steps=STEPS)) == plan_of(model)


@pytest.mark.parametrize(
    ("watched", "names", "found"),
    [
        ({}, ["a"], None),
        ({"a": "b", "b": "c", "c": "a"}, ["b"], ["b", "c", "a", "b"]),
        ({"x": "a", "a": "b", "b": "a"}, ["x"], ["a", "b", "a"]),
        ({"x": "z", "y": "z"}, ["x", "y"], None),
    ],
)
def test_a_cycle_is_found_from_any_of_its_names(
    watched: Mapping[str, str], names: list[str], found: list[str] | None
) -> None:
    assert cycle(watched, names) == found


def test_a_long_cycle_is_found_and_named_in_short() -> None:
    found = cycle({f"n{n}": f"n{(n + 1) % 2_000}" for n in range(2_000)}, ["n7"])

    assert found is not None
    assert (len(found), found[0], found[-1]) == (2_001, "n7", "n7")
    assert '"n11" after … after "n7";' in _remedy(found)
