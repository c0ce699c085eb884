"""Calendars of a small app: rules leave out their days, also after they change."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from data import calendar_events
from runtime.clock import utc_now
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Result, Write

# Each verb is proven by HTTP in test_each_verb.py, and each command in test_views.py.
pytestmark = pytest.mark.only_here

DAILY = {"cron_rule": "59 23 * * *", "timezone": "UTC", "except": [{"calendar": "closed"}]}
Apply = Callable[..., Result]


def days(*ahead: int) -> list[str]:
    """Return the dates so many days from today, in UTC."""
    today = utc_now().date()
    return [str(today + timedelta(days=one)) for one in ahead]


@pytest.fixture
def apply(call: Call, write: Write) -> Apply:
    """Apply the document of the small app with these calendars."""

    def apply(*options: str, **calendars: Any) -> Result:
        document = {"name": "default", "zone": "UTC", "calendars": calendars}
        return call("app", "apply", *options, write(document, "app.json"))

    return apply


@pytest.fixture
def daily(call: Call, write: Write, apply: Apply) -> Callable[..., list[str]]:
    """Add an action that leaves out two days of a calendar; return what asks for its next dates."""
    assert apply(closed=days(2, 3)).code == 0
    made = call("action", "add", write(make_document(name="daily", when=DAILY)))
    assert made.code == 0, made.err

    def next_dates(count: int) -> list[str]:
        found = call("--json", "action", "next", "daily", "--count", str(count)).json
        return [one["utc"][:10] for one in found]

    return next_dates


def test_a_rule_leaves_out_what_its_calendar_holds(call: Call, daily: Any) -> None:
    assert [day for day in daily(4) if day in days(2, 3)] == []
    closed = call("action", "explain", "daily", f"{days(2)[0]}T23:59:00Z")
    assert f"`except` leaves it out: {days(2)[0]}" in closed.out
    shown = call("action", "show", "daily")
    assert f"except {days(2)[0]}; {days(3)[0]}" in shown.out


def test_a_changed_calendar_changes_the_next_occurrences(
    call: Call, daily: Any, apply: Apply
) -> None:
    foreseen = apply("--dry-run", closed=days(4))
    assert days(2)[0] not in daily(4)

    changed = apply(closed=days(4))

    assert 'calendar "closed" changed' in changed.out
    assert 'calendar "closed" changed' in foreseen.out
    assert days(2)[0] in daily(4)
    assert days(4)[0] not in daily(4)
    assert call("--json", "action", "show", "daily").json["revision"] == 2
    again = apply(closed=days(4))
    assert "unchanged" in again.out


@pytest.mark.parametrize(
    ("calendars", "problem"),
    [
        pytest.param(
            {"other": ["12-25"]},
            "calendars 'closed': the action 'daily' leaves it out",
            id="in_use",
        ),
        pytest.param(
            {"closed": [{"days": "mon-sat,sun"}]},
            "the action 'daily' would never be due again",
            id="leaves_nothing",
        ),
    ],
)
def test_a_calendar_does_not_change_so_that_its_actions_suffer(
    daily: Any, apply: Apply, calendars: dict[str, Any], problem: str
) -> None:
    refused = apply(**calendars)

    assert refused.code == 2
    assert problem in refused.err
    assert days(2)[0] not in daily(4)


def test_a_calendar_that_is_not_there_is_named(call: Call, write: Write, apply: Apply) -> None:
    apply(closed=["12-25"])

    refused = call(
        "action",
        "add",
        write(make_document(when={**DAILY, "except": [{"calendar": "close"}]})),
    )

    assert refused.code == 2
    assert "when.except[0]" in refused.err
    assert 'did you mean "closed"?' in refused.err


@pytest.mark.parametrize(
    ("calendars", "problem"),
    [
        ({"a/b": []}, "a slash"),
        ({"closed": "12-25"}, 'write a list: ["12-25"]'),
        ({"closed": ["12-25", "12-32"]}, "calendars.closed[1] '12-32': is not a day of the year"),
        ({"closed": [{"calendar": "other"}]}, "is not a calendar of this small app"),
    ],
)
def test_a_wrong_calendar_is_refused(apply: Apply, calendars: Any, problem: str) -> None:
    refused = apply(**calendars)

    assert refused.code == 2
    assert problem in refused.err


def test_an_export_says_that_no_other_scheduler_has_exceptions(call: Call, daily: Any) -> None:
    refused = call("export", "--format", "beat")

    assert "its rule has an `except`" in refused.out + refused.err


CHRISTMAS = """BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20201225
DTEND;VALUE=DATE:20201227
RRULE:FREQ=YEARLY
SUMMARY:Christ\\, mas
END:VEVENT
"""
MIGRATION = """BEGIN:VEVENT
UID:2
DTSTART;TZID=Europe/Paris:{day}T180000
DTEND;TZID=Europe/Paris:{day}T220000
END:VEVENT
"""
REMINDER = """BEGIN:VEVENT
UID:3
DTSTART:{day}T100000Z
END:VEVENT
"""


@pytest.fixture
def events(call_here: Call, write: Write) -> Apply:
    """Read events of an iCalendar file, a year ahead."""

    def events(*components: str) -> Result:
        day = days(200)[0].replace("-", "")
        body = "".join(components).replace("{day}", day)
        text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n{body}END:VCALENDAR\n"
        return call_here(
            "--json", "app", "calendar", write(text.replace("\n", "\r\n"), "x.ics"), "--years", "1"
        )

    return events


def test_an_icalendar_file_becomes_entries_of_a_calendar(events: Apply, apply: Apply) -> None:
    read = events(CHRISTMAS, MIGRATION, REMINDER)

    assert read.code == 0, read.err
    whole_days = [one for one in read.json["entries"] if "date" in one]
    (migration,) = [one for one in read.json["entries"] if "from" in one]
    assert {one["date"][4:] for one in whole_days} == {whole_days[0]["date"][4:]}
    first, last = whole_days[0]["date"].split("/")
    assert (first[4:], last[4:], whole_days[0]["name"]) == ("-12-25", "-12-26", "Christ, mas")
    assert migration["from"].startswith(days(200)[0])
    assert apply(closed=read.json["entries"]).code == 0


@pytest.mark.parametrize(
    ("component", "problem"),
    [
        ("junk\n", "is not an iCalendar file"),
        (CHRISTMAS.replace("20201225", "20209999"), "is not an iCalendar file"),
        (CHRISTMAS.replace("YEARLY", "SECONDLY"), "repeats more often than daily"),
        (CHRISTMAS.replace("YEARLY", "DAILY;BYSECOND=1,2"), "repeats more often than daily"),
    ],
)
def test_a_file_that_is_no_calendar_is_refused(events: Apply, component: str, problem: str) -> None:
    refused = events(component)

    assert refused.code == 2
    assert problem in refused.err


def test_a_file_whose_rules_take_too_long_is_refused(
    events: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calendar_events, "LIMITS", replace(calendar_events.LIMITS, cpu_s=1))
    endless = CHRISTMAS.replace("YEARLY", "DAILY;BYMONTH=2;BYMONTHDAY=30")

    refused = events(*(endless.replace("UID:1", f"UID:{n}") for n in range(100)))

    assert refused.code == 2
    assert "x.ics: needs more than 1 s of CPU time; make it smaller" in refused.err
