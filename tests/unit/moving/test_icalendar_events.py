"""Events of iCalendar files as entries, held against python-dateutil."""

from datetime import UTC, datetime

import pytest

from models.action.document import ParseContext
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


BEGIN = "DTSTART;TZID=Europe/Paris:20261201T090000"
DAILY = "RRULE:FREQ=DAILY"
TWICE = "RRULE:FREQ=DAILY;BYHOUR=9,15;BYMINUTE=0"


@pytest.mark.parametrize(
    ("excepted", "days"),
    [
        ("EXDATE;TZID=Europe/Paris:20261202T090000", ["2026-12-02"]),
        ("EXDATE:20261202T080000Z", ["2026-12-02"]),
        ("EXDATE;TZID=America/New_York:20261202T030000", ["2026-12-02"]),
        ("EXDATE;TZID=Asia/Tokyo:20261202T170000", ["2026-12-02"]),
        ("EXDATE:20261202T090000", ["2026-12-02"]),
        ("EXDATE;VALUE=DATE:20261202", ["2026-12-02"]),
        ("EXDATE:20261202T080000Z,20261203T080000Z", ["2026-12-02", "2026-12-03"]),
        ("EXDATE:20261202T150000Z", None),
        ("EXDATE:20261202T090000Z", None),
        ("EXDATE;TZID=Europe/Paris:20261202T090001", None),
        ("EXDATE;TZID=Asia/Tokyo:20261203T000000", None),
    ],
)
def test_a_time_at_which_an_event_does_not_begin_leaves_out_nothing(
    excepted: str, days: list[str] | None
) -> None:
    made = moved(BEGIN, DAILY, excepted)

    assert made.kind == "same"
    assert (made.document or {})["when"].get("except") == days


def test_one_of_several_times_of_a_day_cannot_be_left_out() -> None:
    made = moved(BEGIN, TWICE, "EXDATE;TZID=Europe/Paris:20261202T090000")

    assert made.kind == "cannot"
    assert "leaves out one of several times of a day" in made.why


@pytest.mark.parametrize(
    "status", ["CANCELLED", "cancelled", "Cancelled", "CONFIRMED", "TENTATIVE", None]
)
@pytest.mark.parametrize("rule", [DAILY, TWICE, "SEQUENCE:1"])
def test_a_cancelled_event_does_not_run(status: str | None, rule: str) -> None:
    made = moved(BEGIN, rule, *([] if status is None else [f"STATUS:{status}"]))

    is_cancelled = (status or "").upper() == "CANCELLED"
    assert (made.kind, made.why) == (
        ("cannot", "it is cancelled") if is_cancelled else ("same", "")
    )


def test_instants_that_the_calendar_moves_are_named() -> None:
    event = ["BEGIN:VEVENT", "UID:1", BEGIN, DAILY, "END:VEVENT"]
    moved_to = ["BEGIN:VEVENT", "UID:1", "DTSTART:20261205T100000Z"]
    moved_to += ["RECURRENCE-ID:20261205T080000Z", "END:VEVENT"]
    lines = ["BEGIN:VCALENDAR", *event, *moved_to, "END:VCALENDAR", ""]

    found = entries_of("\r\n".join(lines), "x.ics", WORK, "UTC", NOW)
    series, other = outcomes(found, CONTEXT)

    assert (series.kind, other.kind) == ("differs", "cannot")
    (remark,) = series.remarks
    assert remark.startswith("the calendar has other events in place of 2026-12-05 08:00:00")


def test_seconds_do_not_lose_the_first_instant() -> None:
    made = moved("DTSTART:20261201T090030Z", "RRULE:FREQ=DAILY;COUNT=3")

    assert made.kind == "differs"
    assert made.upcoming is not None
    assert [at.day for at in made.upcoming.here] == [1, 2, 3]


@pytest.mark.parametrize("kind", ["VTODO", "VJOURNAL"])
def test_what_is_no_event_is_named(kind: str) -> None:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", f"BEGIN:{kind}", "UID:7"]
    lines += ["SUMMARY:Water", "DTSTART:20270301T120000Z", "RRULE:FREQ=DAILY"]
    text = "\r\n".join([*lines, f"END:{kind}", "END:VCALENDAR", ""])

    (made,) = outcomes(entries_of(text, "x.ics", WORK, "UTC", NOW), CONTEXT)

    assert (made.name, made.where, made.kind) == ("Water", "x.ics 7", "cannot")
    assert made.why == f"it is a {kind}, and events alone are due at their begin"


@pytest.mark.parametrize(
    ("begin", "rule", "is_off"),
    [
        ("20261201T090000", "FREQ=WEEKLY;BYDAY=MO", True),
        ("20261201T090000", "FREQ=WEEKLY;BYDAY=TU", False),
        ("20261201T090000", "FREQ=MONTHLY;BYMONTHDAY=2", True),
        ("20261201T090000", "FREQ=MONTHLY;BYDAY=1TU", False),
        ("20261201T090000", "FREQ=MONTHLY;BYDAY=-1FR", True),
        ("20261201T090000", "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1", True),
        ("20261201T090000", "FREQ=DAILY;BYHOUR=10;BYMINUTE=0", True),
        ("20261201T090000", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0", False),
        ("20261201T090000", "FREQ=DAILY;INTERVAL=3", False),
        ("20261103T090000", "FREQ=WEEKLY;BYDAY=MO", False),
        ("20270328T023000", "FREQ=DAILY", False),
        ("20261201T090000", "FREQ=WEEKLY;BYDAY=MO\r\nEXDATE:20261201T080000Z", False),
    ],
)
def test_a_begin_ahead_that_its_rule_leaves_out_is_named(
    begin: str, rule: str, is_off: bool
) -> None:
    made = moved(f"DTSTART;TZID=Europe/Paris:{begin}", f"RRULE:{rule}")

    said = "calendars also show it at its DTSTART, 2026-12-01T08:00:00Z, which its RRULE leaves out"
    # An action runs a time that the clocks skip once, at the end of the gap.
    is_same = not is_off and "T0230" not in begin
    assert (made.kind, made.remarks) == (
        "same" if is_same else "differs",
        (said,) if is_off else (),
    )
