"""Events of iCalendar files as entries, held against python-dateutil."""

from datetime import UTC, datetime

import pytest

from models.action import ParseContext
from models.errors import Refused as RefusedCommand
from moving.icalendar_events import entries_of
from moving.outcomes import Outcome, outcomes
from tasks.built_in import built_in_steps

NOW = datetime(2026, 11, 25, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW)
WORK = {"maintenance": True}


def moved(*lines: str) -> Outcome:
    """Return what becomes of one event with these lines."""
    event = ["BEGIN:VEVENT", "UID:1", "SUMMARY:Sprint planning", *lines, "END:VEVENT"]
    text = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", *event, "END:VCALENDAR", ""])
    (made,) = outcomes(entries_of(text, "x.ics", WORK, "Asia/Tokyo", NOW), CONTEXT)
    return made


def test_an_event_becomes_an_action_that_runs_the_work_at_its_begin() -> None:
    made = moved(
        "DESCRIPTION:Plan the\\n next two weeks.",
        "DTSTART;TZID=Europe/Paris:20261130T090000",
        "DTEND;TZID=Europe/Paris:20261130T100000",
        "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;UNTIL=20280101T000000Z",
        "EXDATE;TZID=Europe/Paris:20261228T090000,20270111T090000",
        "EXDATE;TZID=Europe/Paris:20270125T090000",
    )

    assert (made.kind, made.document) == (
        "same",
        {
            "name": "Sprint planning",
            "description": "Plan the next two weeks.",
            "owner": "import:icalendar",
            "operations": WORK,
            "when": {
                "rrule": "FREQ=WEEKLY;UNTIL=20280101T000000Z;INTERVAL=2;BYDAY=MO",
                "at": "09:00",
                "timezone": "Europe/Paris",
                "starting_at": "2026-11-30T09:00:00",
                "except": ["2026-12-28", "2027-01-11", "2027-01-25"],
            },
        },
    )


@pytest.mark.parametrize(
    ("lines", "when"),
    [
        pytest.param(
            ["DTSTART:20270301T120000Z"], {"due_date": "2027-03-01T12:00:00Z"}, id="one_event"
        ),
        pytest.param(
            ["DTSTART:20270301T120000"], {"due_date": "2027-03-01T03:00:00Z"}, id="on_any_clock"
        ),
        pytest.param(
            ["DTSTART;VALUE=DATE:20261224", "RRULE:FREQ=YEARLY"],
            {
                "rrule": "FREQ=YEARLY",
                "at": "00:00",
                "timezone": "Asia/Tokyo",
                "starting_at": "2026-12-24T00:00:00",
            },
            id="a_whole_day",
        ),
        pytest.param(
            ["DTSTART:20261201T080000Z", "RRULE:FREQ=DAILY;BYHOUR=8,20;COUNT=9"],
            {
                "rrule": "FREQ=DAILY;COUNT=9;BYHOUR=8,20",
                "timezone": "UTC",
                "starting_at": "2026-12-01T08:00:00",
            },
            id="times_in_the_rule",
        ),
    ],
)
def test_rules(lines: list[str], when: object) -> None:
    made = moved(*lines)

    assert made.document is not None
    assert (made.kind, made.document["when"]) == ("same", when)


def test_a_time_that_the_clocks_skip_differs() -> None:
    made = moved("DTSTART;TZID=Europe/Paris:20261130T023000", "RRULE:FREQ=DAILY")

    assert made.difference is not None
    assert made.difference.first_at == datetime(2027, 3, 28, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["DTSTART:20200301T120000Z"], "its time is past"),
        (["DTSTART:20270301T120000Z", "RRULE:FREQ=HOURLY;INTERVAL=2"], '{"every": "PT2H"}'),
        (["DTSTART:20270301T120000Z", "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"], "names no day"),
        (["DTSTART:20270301T120000Z", "RRULE:FREQ=DAILY", "RDATE:20270302T130000Z"], "has RDATE"),
        (["DTSTART:20270301T120000Z", "RECURRENCE-ID:20270301T110000Z"], "has RECURRENCE-ID"),
        (["RRULE:FREQ=DAILY"], "has no DTSTART"),
    ],
)
def test_what_no_action_can_say_is_refused(lines: list[str], why: str) -> None:
    made = moved(*lines)

    assert (made.kind, made.document) == ("cannot", None)
    assert why in made.why


def test_another_text_is_refused() -> None:
    with pytest.raises(RefusedCommand, match=r"x\.ics is not an iCalendar file"):
        list(entries_of("BEGIN:VEVENT\r\n", "x.ics", WORK, "UTC", NOW))
