"""`except` leaves out what an oracle finds closed on the wall clock, and says what is wrong."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.action.document import load_action, plan_of, stored_document
from models.action.plan import Plan
from tests.ticks import DAY
from tests.unit.models.action.minimal import action, parse
from tests.unit.models.action.test_schedule import answers_like

UID = UUID("6f1d0c1e-0000-4000-8000-000000000001")
# Their clocks change by an hour, by half an hour, and by a whole day.
ZONES = ("Europe/Paris", "Australia/Lord_Howe", "America/New_York", "Pacific/Apia", "UTC")
RULES: list[dict[str, Any]] = [
    {"cron_rule": "*/30 * * * *"},
    {"cron_rule": "15 2 * * *"},
    {"cron_rule": "0 7-20/3 * * mon-fri"},
    {"every": "PT45M", "starting_at": "2011-01-01T00:10:00Z"},
    {"solar": "sunset", "lat": 48.8, "lon": 2.3},
]
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# Days around clock changes of these zones; Apia left out 30 December 2011.
STARTS = (
    datetime(2026, 3, 27, tzinfo=UTC),
    datetime(2026, 10, 2, tzinfo=UTC),
    datetime(2026, 10, 30, tzinfo=UTC),
    datetime(2011, 12, 28, tzinfo=UTC),
)


def saved(when: Any, **given: Any) -> Plan:
    found = parse(action(when=when), **given)
    plan = plan_of(found)
    assert plan_of(parse(stored_document(found), **given)) == plan
    assert Plan.from_json(plan.to_json()) == plan
    return plan


def _closes(entry: Any, day: date) -> bool:
    """Answer by the entry as a reader understands it, for a day of the wall clock."""
    if isinstance(entry, str) and len(entry) == len("12-25"):
        return f"{day:%m-%d}" == entry
    if isinstance(entry, str):
        first, _, last = entry.partition("/")
        return date.fromisoformat(first) <= day <= date.fromisoformat(last or first)
    return WEEKDAYS[day.weekday()] in entry["days"].split(",")


weekdays = st.builds(
    lambda days: {"days": ",".join(days)},
    st.lists(st.sampled_from(WEEKDAYS), unique=True, min_size=1, max_size=4),
)
dates = st.dates(date(2026, 3, 25), date(2026, 4, 5)) | st.dates(
    date(2011, 12, 27), date(2012, 1, 2)
)
entries = st.lists(
    weekdays
    | dates.map(str)
    | dates.map(lambda day: f"{day:%m-%d}")
    | st.builds(lambda day, n: f"{day}/{day + n * DAY}", dates, st.integers(0, 3)),
    min_size=1,
    max_size=5,
)


# A rule that is always closed is searched for decades.
@settings(deadline=None)
@given(st.sampled_from(RULES), st.sampled_from(ZONES), st.sampled_from(STARTS), entries)
@example(RULES[0], "Europe/Paris", STARTS[0], [{"days": "sun"}])
@example(RULES[0], "Australia/Lord_Howe", STARTS[1], [{"days": "sun"}])
@example(RULES[0], "Pacific/Apia", STARTS[3], ["2011-12-30"])
def test_what_the_wall_clock_shows_as_closed_is_left_out(
    rule: dict[str, Any], zone: str, start: datetime, written: list[Any]
) -> None:
    whens = ({**rule, "timezone": zone, "except": written}, {**rule, "timezone": zone})
    schedule, bare = (plan_of(load_action(action(when=one))).schedule(UID) for one in whens)
    until = start + 6 * DAY

    expected = [
        at
        for at in bare.between(start, until)
        if not any(_closes(entry, at.astimezone(ZoneInfo(zone)).date()) for entry in written)
    ]

    answers_like(expected, schedule, start, until)
    middle = start + 3 * DAY
    assert schedule.count(start, middle) + schedule.count(middle, until) == len(expected)


CALENDARS = {"french": ["12-25", {"date": "2027-07-14", "name": "Fête nationale"}]}
BY_CALENDAR = {
    "cron_rule": "0 7 * * *",
    "timezone": "Europe/Paris",
    "except": ["2027-01-01", {"calendar": "french"}],
}


def test_a_calendar_stands_for_its_dates_when_it_is_read() -> None:
    plan = saved(BY_CALENDAR, calendars=CALENDARS)
    in_place = saved({**BY_CALENDAR, "except": ["2027-01-01", *CALENDARS["french"]]})

    read = plan.with_calendars(CALENDARS)

    span = (datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 8, 1, tzinfo=UTC))
    assert read.schedule(UID).between(*span) == in_place.schedule(UID).between(*span)
    assert [closed.names for closed in read.closed] == [
        (
            "calendar french",
            "2027-01-01",
            "12-25 of each year of calendar french",
            "Fête nationale of calendar french",
        )
    ]


def test_a_plan_holds_the_name_of_a_calendar_and_none_of_its_dates() -> None:
    plan = saved(BY_CALENDAR, calendars=CALENDARS)
    read = plan.with_calendars(CALENDARS)

    assert '"calendar":"french"' in plan.to_json()
    assert "2027-07-13" not in plan.to_json()
    assert read.to_json() == plan.to_json()
    assert read.with_calendars({}) == plan


def test_a_zone_is_stored_only_with_exceptions_that_need_it() -> None:
    interval = {"every": "PT1H", "starting_at": "2026-01-01T00:00:00Z"}
    with_one = {**interval, "except": ["12-25"]}

    kept = [stored_document(parse(action(when=one)))["when"] for one in (interval, with_one)]

    assert kept == [interval, {**with_one, "timezone": "Europe/Paris"}]
