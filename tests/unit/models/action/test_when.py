from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from models.action.document import ParseContext, parse_action, plan_of, stored_document
from models.action.event_rules import AfterEventModel, EventRule, OnEventModel
from models.action.intervals import FromEndModel
from models.action.rules import CronModel, DueDateModel
from models.action.when import WhenModel
from models.fingerprint import drawn_offset, jitter_offset
from models.parsing import Reading
from tests.factories import STEPS, make_rule
from tests.tables import table
from tests.unit.models.action.minimal import NOW, action

PARIS = Reading(default_zone="Europe/Paris", created_at=NOW)


def read(document: object) -> WhenModel:
    return WhenModel.model_validate(document, context=PARIS)


def test_a_rule_is_normalised_for_the_tick_and_stored_as_written() -> None:
    when = read({"cron_rule": "@Daily", "timezone": "utc"})

    assert when.resolved == (CronModel(cron_rule="0 0 * * *", timezone="UTC"),)
    assert when.model_dump(mode="json") == {"cron_rule": "@Daily", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("document", "due_at"),
    [
        ({"due_date": "2027-01-01T08:00"}, datetime(2027, 1, 1, 7, tzinfo=UTC)),
        ({"due_date": "2027-01-01T08:00", "timezone": "UTC"}, datetime(2027, 1, 1, 8, tzinfo=UTC)),
        (
            {"due_date": "2027-01-01T08:00Z", "timezone": "Asia/Tokyo"},
            datetime(2027, 1, 1, 8, tzinfo=UTC),
        ),
    ],
    ids=["app_zone", "own_zone", "offset_before_zone"],
)
def test_a_due_date_is_read_in_its_zone(document: object, due_at: datetime) -> None:
    (rule,) = read(document).resolved
    assert isinstance(rule, DueDateModel)
    assert (rule.due_at, rule.look_back) == (due_at, timedelta(days=1))


def test_a_zone_is_stored_only_with_a_due_date_that_needs_it() -> None:
    with_offset: Any = read({"due_date": "2027-01-01T08:00Z"}).model_dump(mode="json")
    without: Any = read({"due_date": "2027-01-01T08:00"}).model_dump(mode="json")

    assert with_offset == {"due_date": "2027-01-01T08:00Z"}
    assert without == {"due_date": "2027-01-01T08:00", "timezone": "Europe/Paris"}


def test_a_list_is_a_union_in_its_order() -> None:
    document: Any = [
        {"due_date": "2027-01-01T08:00Z"},
        {"cron_rule": "0 7 * * *", "timezone": "UTC"},
    ]
    when = read(document)

    assert [type(rule) for rule in when.rules] == [DueDateModel, CronModel]
    assert when.model_dump(mode="json") == document


def test_a_list_of_one_stays_a_list() -> None:
    document: Any = [{"cron_rule": "0 7 * * *", "timezone": "UTC"}]

    assert read(document).model_dump(mode="json") == document


def test_a_list_has_at_most_a_hundred_entries() -> None:
    with pytest.raises(ValidationError, match="at most 100"):
        read([{"cron_rule": "* * * * *"}] * 101)


@pytest.mark.parametrize("tick_s", [5, 60])
def test_an_interval_is_at_least_the_tick_of_the_daemon(tick_s: int) -> None:
    context = ParseContext("UTC", NOW, tick=timedelta(seconds=tick_s), steps=STEPS)

    assert plan_of(parse_action(action(when={"every": tick_s}), context))
    with pytest.raises(Exception, match="a tick"):
        parse_action(action(when={"every": tick_s - 1}), context)


@pytest.mark.parametrize(
    ("starting_at", "zone", "expected"),
    table(__file__, "an_interval_begins_at_a_time_of_its_own_zone"),
)
def test_an_interval_begins_at_a_time_of_its_own_zone(
    starting_at: str, zone: str | None, expected: str
) -> None:
    when = {"every": "P1D", "starting_at": starting_at} | ({"timezone": zone} if zone else {})
    context = ParseContext("Asia/Tokyo", NOW, steps=STEPS)

    stored = stored_document(parse_action(action(when=when), context))["when"]

    assert stored == {**when, "starting_at": expected}
    elsewhere = ParseContext("America/New_York", NOW, steps=STEPS)
    assert stored_document(parse_action(action(when=stored), elsewhere))["when"] == stored


@pytest.mark.parametrize(
    ("every", "look_back"),
    [
        ("P7D", timedelta(days=7)),
        ("P3660D", timedelta(days=7)),
    ],
)
def test_an_interval_looks_back_one_interval_up_to_a_week(every: str, look_back: timedelta) -> None:
    assert [look_back] == [one.look_back for one in read({"every": every}).rules]


@pytest.mark.parametrize(
    "event",
    ["instance.user.activated", "instance.user.created", "instance.user.last_seen", "order.paid"],
)
def test_an_action_may_be_on_an_event(event: str) -> None:
    when = read({"on": event})

    assert when.is_event
    assert [event] == [rule.event for rule in when.rules if isinstance(rule, OnEventModel)]
    (rule,) = when.resolved
    assert isinstance(rule, EventRule)
    assert rule.lag == timedelta(0)


def test_the_second_example_is_parsed() -> None:
    when = read({"after": "instance.user.last_seen", "delay": "P7DT30S"})
    (rule,) = when.rules

    assert isinstance(rule, AfterEventModel)
    assert rule.event == "instance.user.last_seen"
    assert rule.lag == timedelta(seconds=604_830)
    assert when.model_dump(mode="json") == {
        "after": "instance.user.last_seen",
        "delay": "P7DT30S",
    }


def test_an_interval_from_the_end_has_at_most_one_instant_and_says_so() -> None:
    rule = make_rule(every="PT10M", **{"from": "end"}, starting_at="2027-01-01T00:00:00Z")
    assert isinstance(rule, FromEndModel)
    since, ended_at = datetime(2027, 2, 1, tzinfo=UTC), datetime(2027, 2, 1, 0, 0, 0, 1, tzinfo=UTC)
    second, ten = timedelta(seconds=1), timedelta(minutes=10)

    def due(rule: FromEndModel) -> datetime | None:
        return rule.schedule(UUID(int=1)).next(datetime(2026, 1, 1, tzinfo=UTC))

    assert due(rule) is None
    assert due(rule.from_last_end(since, None)) == since + second
    assert due(rule.from_last_end(since, ended_at)) == since + second + ten
    assert due(rule.from_last_end(since - timedelta(days=99), None)) == rule.starting_at
    assert rule.words("UTC") == "10 minutes after the last run ended, first 2027-01-01T00:00:00Z"


@pytest.mark.parametrize("each", [False, True])
def test_jitter_moves_what_is_counted_from_the_end(each: bool) -> None:
    uid, spread, since = UUID(int=1), timedelta(minutes=5), datetime(2027, 2, 1, tzinfo=UTC)
    keys = {"every": "PT10M", "from": "end", "jitter": "PT5M", "jitter_each": each}
    rule = make_rule(**keys)
    assert isinstance(rule, FromEndModel)
    named = since + timedelta(hours=1, minutes=10)
    offset = drawn_offset(uid, named, spread) if each else jitter_offset(uid, spread)

    counted = rule.from_last_end(since, since + timedelta(hours=1))

    assert counted.schedule(uid).next(since) == named + offset
