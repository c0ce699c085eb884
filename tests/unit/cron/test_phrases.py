import re
from datetime import datetime
from typing import Any

import pytest

from cron import InvalidRule
from cron.fields import WEEKDAYS
from cron.phrases import EXAMPLES, rule_of_phrase

# A Thursday, on the clock of the rule's zone.
NOW = datetime(2026, 11, 26, 10, 0)  # noqa: DTZ001 - a clock on the wall
CRON = {
    "weekdays 7:30": "30 7 * * mon-fri",
    "Every Monday at 9.": "0 9 * * mon",
    "mondays and fridays at midnight": "0 0 * * mon,fri",
    "at 9": "0 9 * * *",
    "noon": "0 12 * * *",
    "every day at 9am": "0 9 * * *",
    "daily at 5 p.m.": "0 17 * * *",
    "at 7 a.m. and 9 p.m.": "0 7,21 * * *",
    "Daily at 5 p.m..": "0 17 * * *",
    "at 5 p.m. on mondays.": "0 17 * * mon",
    "at 7 am and 9 pm": "0 7,21 * * *",
    "at 7 pm and 9 pm on mondays": "0 19,21 * * mon",
    "noon and 9 pm": "0 12,21 * * *",
    "at 17 and 9 pm": "0 17,21 * * *",
    "at 9, 12 and 17 on weekdays": "0 9,12,17 * * mon-fri",
    "on the 1st and 15th at noon": "0 12 1,15 * *",
    "every month on the 15th at 9": "0 9 15 * *",
    "last Friday of the month 17:00": "0 17 * * friL",
    "last friday at 5 pm": "0 17 * * friL",
    "second monday of each month at 9": "0 9 * * mon#2",
    "last working day of the month at 17:00": "0 17 LW * *",
    "first weekday of the month at 8": "0 8 1W * *",
    "1st monday at 9": "0 9 * * mon#1",
    "every 1st monday at 9": "0 9 * * mon#1",
    "each 1st friday at 9": "0 9 * * fri#1",
    "every first monday at 9": "0 9 * * mon#1",
    "every 1st at 9": "0 9 1 * *",
    "1st working day of the month at 8": "0 8 1W * *",
    "every 1 week on monday at 9": "0 9 * * mon",
    "25 december at 8": "0 8 25 dec *",
    "every year on December 25th at 8": "0 8 25 dec *",
    "1st of january and july at 8": "0 8 1 jan,jul *",
    "hourly": "0 * * * *",
    "every minute": "* * * * *",
    "every 15 minutes": "*/15 * * * *",
    "every 15 minutes on weekdays": "*/15 * * * mon-fri",
}
EVERY = {"every 7 minutes": "PT7M", "every 90 minutes": "PT90M", "every 2 hours": "PT2H"}
CALENDAR = {
    "every second Monday at 9": ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "09:00", "2026-11-30"),
    "every other thursday at 10": ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TH", "10:00", "2026-12-03"),
    "every other thursday at 11": ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TH", "11:00", "2026-11-26"),
    "every third friday at 9": ("FREQ=WEEKLY;INTERVAL=3;BYDAY=FR", "09:00", "2026-11-27"),
    "every 2 weeks on monday and thursday at 9": (
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH", "09:00", "2026-11-30",
    ),
    "every other day at 6": ("FREQ=DAILY;INTERVAL=2", "06:00", "2026-11-27"),
    "at 9 and 17:30": ("FREQ=DAILY", ["09:00", "17:30"], "2026-11-26"),
    "weekdays at 9 from 2027-01-01 until 2027-12-31": (
        "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL=20271231", "09:00", "2027-01-01",
    ),
    "daily at 9 from 2027-01-01 until 2027-01-01": (
        "FREQ=DAILY;UNTIL=20270101", "09:00", "2027-01-01",
    ),
    "daily at 5 p.m. from 2027-01-01": ("FREQ=DAILY", "17:00", "2027-01-01"),
    "every other month on the 1st at 9 from 2027-01-01": (
        "FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=1", "09:00", "2027-01-01",
    ),
    "every 3 months on the second tuesday at 8:15, starting 2027-01-01": (
        "FREQ=MONTHLY;INTERVAL=3;BYDAY=2TU", "08:15", "2027-01-01",
    ),
    "last day of every second month at 18:00 from 2027-01-31": (
        "FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=-1", "18:00", "2027-01-31",
    ),
    "last friday at 17:00 from 2027-01-01": ("FREQ=MONTHLY;BYDAY=-1FR", "17:00", "2027-01-01"),
    "every 2 years on 1 march at 8 from 2027-03-01": (
        "FREQ=YEARLY;INTERVAL=2;BYMONTH=3;BYMONTHDAY=1", "08:00", "2027-03-01",
    ),
}  # fmt: skip
REFUSED = {
    "whenever I like": EXAMPLES,
    "": EXAMPLES,
    "9": EXAMPLES,
    "monday 9": EXAMPLES,
    "at 25:00": EXAMPLES,
    "every 0 days at 9": EXAMPLES,
    "every second weekday at 9": EXAMPLES,
    "x" * 200: "is longer than 120 characters",
    "every monday": "names no time of the day; write one, such as 'every monday at 9'",
    "weekly at 9": "names no day; write 'every Monday at 9'",
    "every other month": "names no day; write 'on the 1st at 9'",
    "every other month on the 1st at 9": "leaves open in which month it begins; add its first day",
    "third friday at 9": (
        "could mean two rules; write 'every third friday at 9' or 'third friday of the month at 9'"
    ),
    "daily at 9 from 2027-02-01 until 2027-01-31": (
        "'daily' ends on 2027-01-31, before it begins on 2027-02-01; write a later day after"
    ),
    "mondays at 9 until 2026-11-29": "ends on 2026-11-29, before it begins on 2026-11-30",
    "on the 1st at 9 until 2020-01-01": "ends on 2020-01-01, before it begins",
    "every 1st week on monday at 9": EXAMPLES,
    "monday of every 1st week at 9": EXAMPLES,
    "every 1st day at 9": EXAMPLES,
    "every 1st month on the 15th at 9": EXAMPLES,
    "every 1st monday and friday at 9": EXAMPLES,
    "1st monday and friday at 9": EXAMPLES,
    "last monday and friday at 9": EXAMPLES,
    "third monday and friday at 9": "write 'every third monday and friday at 9'",
    "2nd friday at 9": "write 'every 2nd friday at 9' or '2nd friday of the month at 9'",
    "daily at 9 from 2027-13-01": "names no date",
}


@pytest.mark.parametrize(("phrase", "rule"), CRON.items())
def test_a_phrase_is_a_cron_rule(phrase: str, rule: str) -> None:
    assert rule_of_phrase(phrase, NOW) == {"cron_rule": rule}


@pytest.mark.parametrize(("phrase", "every"), EVERY.items())
def test_what_does_not_divide_an_hour_is_an_interval(phrase: str, every: str) -> None:
    assert rule_of_phrase(phrase, NOW) == {"every": every}


@pytest.mark.parametrize(("phrase", "expected"), CALENDAR.items())
def test_what_cron_cannot_say_is_a_rule_of_the_calendar(
    phrase: str, expected: tuple[str, Any, str]
) -> None:
    rrule, at, since = expected

    assert rule_of_phrase(phrase, NOW) == {"rrule": rrule, "at": at, "starting_at": since}


@pytest.mark.parametrize("phrase", [*REFUSED, "every second sunday to tuesday", "1st monday"])
def test_a_refusal_proposes_phrases_that_are_understood(phrase: str) -> None:
    with pytest.raises(InvalidRule) as error:
        rule_of_phrase(phrase, NOW)

    proposed = re.findall("'([^']*)'", str(error.value).partition("write")[2])
    assert all(rule_of_phrase(one, NOW) for one in proposed if " " in one and one[:5] != "from ")


MIXED = [
    "at 7 and 9 pm",
    "monday at 1 and 2 and 3pm",
    "at 12 and 6 am",
    "at 9pm and 7",
    "at 7:30, 9 p.m. on weekdays",
    "7 and 9 pm on mondays",
    "at 7 o'clock and 9 pm",
    "every other friday at 7 and 9 pm from 2027-01-01",
]


@pytest.mark.parametrize("phrase", MIXED)
def test_am_or_pm_behind_one_of_several_times_is_refused(phrase: str) -> None:
    with pytest.raises(InvalidRule, match="write am or pm after each time"):
        rule_of_phrase(phrase, NOW)


# The days of a calendar's rule are in the order of a week that begins on Sunday.
CODES = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")


@pytest.mark.parametrize("range", ["{} to sunday", "{}-sun", "{} through sunday"])
@pytest.mark.parametrize("first", range(1, 7))
def test_a_range_that_ends_on_sunday_has_sunday(first: int, range: str) -> None:
    days = range.format(WEEKDAYS[first])
    expected = ",".join(("SU", *CODES[first:]))

    rules = [
        rule_of_phrase(f"{days} at 9 from 2027-01-01", NOW),
        rule_of_phrase(f"{days} at 9 until 2027-01-01", NOW),
        rule_of_phrase(f"{days} at 9:00 and 10:30", NOW),
        rule_of_phrase(f"every 2 weeks on {days} at 9", NOW),
    ]

    assert [re.findall("BYDAY=([A-Z,]+)", one["rrule"]) for one in rules] == [[expected]] * 4


def test_a_range_that_ends_on_sunday_begins_on_a_sunday() -> None:
    saturday = NOW.replace(day=28)

    rule = rule_of_phrase("every 2 weeks on thursday-sunday at 9", saturday)

    assert rule["starting_at"] == "2026-11-29"


@pytest.mark.parametrize(("phrase", "problem"), REFUSED.items())
def test_a_phrase_that_is_not_understood_is_refused_with_what_to_write(
    phrase: str, problem: str
) -> None:
    with pytest.raises(InvalidRule) as error:
        rule_of_phrase(phrase, NOW)

    assert problem in str(error.value)
