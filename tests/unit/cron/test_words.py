import pytest

from cron import InvalidRule, in_words
from tests.unit.cron.debian import RULES


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("0,15,30,45 * * * *", "every 15 minutes"),
        ("*/7 * * * *", "at every 7th minute from 0 to 56 past every hour"),
        ("0 * * * *", "at minute 0 past every hour"),
        ("@hourly", "at minute 0 past every hour"),
        ("0,30 * * * *", "every 30 minutes"),
        ("5,10 * * * *", "at minutes 5 and 10 past every hour"),
        ("0-10,30 * * * *", "at minutes 0 to 10 and 30 past every hour"),
        ("0 7 * * 1", "at 07:00 on Monday"),
        ("0 7,19 * * *", "at 07:00 and 19:00"),
        ("@daily", "at 00:00"),
        ("@weekly", "at 00:00 on Sunday"),
        ("@yearly", "at 00:00 on day 1 of January"),
        ("30 2 1 * *", "at 02:30 on day 1 of the month"),
        ("0 */6 * * *", "at 00:00, 06:00, 12:00 and 18:00"),
        ("0 */2 * * *", "at minute 0 past every 2nd hour from 0"),
        ("0 1-23/2 * * *", "at minute 0 past every 2nd hour from 1 to 23"),
        ("0 9-17 * * 1-5", "at minute 0 past hours 9 to 17 on Monday to Friday"),
        ("*/15 9-17 * * mon-fri", "every 15 minutes from 09:00 to 17:59 on Monday to Friday"),
        ("* 2 * * *", "every minute from 02:00 to 02:59"),
        ("*/10 1,3 * * *", "every 10 minutes of hours 1 and 3"),
        ("0 0 * * 0,6", "at 00:00 on Saturday and Sunday"),
        ("0 0 * * fri,sat,sun", "at 00:00 on Friday to Sunday"),
        ("0 0 * 1,7 *", "at 00:00 in January and July"),
        ("0 0 * 12 mon", "at 00:00 on Monday in December"),
        ("0 0 1,15 jan-mar *", "at 00:00 on days 1 and 15 of January to March"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday"),
        ("0 0 13 1 5", "at 00:00 on day 13 of January or on Friday in January"),
        ("0 0 13 * */6", "at 00:00 on day 13 of the month, only if it is Saturday or Sunday"),
        (
            "0 0 */2 * 1",
            "at 00:00 on every 2nd day from 1 to 31 of the month, only if it is Monday",
        ),
        ("0 0 1-31 * 5", "at 00:00"),
        ("0 0 13 * 0-6", "at 00:00"),
        ("0 0 * * 0-7", "at 00:00"),
        ("0 18 * * friL", "at 18:00 on the last Friday of each month"),
        ("0 9 * 1,7 mon#2", "at 09:00 on the second Monday of January and July"),
        ("0 9 ? * mon,fri#1", "at 09:00 on Monday and the first Friday of each month"),
        ("0 9 L * *", "at 09:00 on the last day of the month"),
        ("0 9 1,L-1 2 *", "at 09:00 on day 1 and the day 1 day before the last of February"),
        ("0 9 15W * *", "at 09:00 on the day from Monday to Friday nearest to day 15 of the month"),
        ("0 9 LW * *", "at 09:00 on the last day from Monday to Friday of the month"),
        (
            "0 9 L * sun#1",
            "at 09:00 on the last day of the month or on the first Sunday of each month",
        ),
    ],
)
def test_a_rule_reads_as_english(rule: str, expected: str) -> None:
    assert expected == in_words(rule)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_words(rule: str) -> None:
    words = in_words(rule)

    assert words.startswith(("at ", "every "))
    assert "*" not in words


def test_words_for_what_is_no_rule_are_refused() -> None:
    with pytest.raises(InvalidRule, match="above 59"):
        in_words("61 * * * *")
