"""Pages that say what the program computes: the clock, signatures of hooks, and sizes."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from cron import CronSchedule, WallClock, in_words
from cron.recurrence import read_recurrence
from cron.recurrent_days import RecurrentMinutes
from models.notices import NoticeKind
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from tasks.notices.webhook import SIGNATURE, signature
from tests.docs.pages import text_of
from tests.factories import make_action, make_operation

TIME = text_of("explanation/time")
ROWS = re.findall(r"^\| `(.+?)` \| (\w+/\w+) \| ([\d-]{10}) \| (.+?) \|$", TIME, re.M)
RULES = text_of("reference/action")
SIGNS = re.findall(r"^\| `(\S+ \S+ \S+ \S+ \S+)` \| (at .+?) \|$", RULES, re.M)
RECURRENCES = re.findall(r"^\| `(FREQ=\S+)` \| .+? \| ([\d, -]+) \|$", RULES, re.M)


@pytest.mark.parametrize(("rule", "days"), RECURRENCES)
def test_each_example_of_a_recurrence_runs_when_the_page_says(rule: str, days: str) -> None:
    minutes = RecurrentMinutes(read_recurrence(rule), [540], date(2026, 11, 25))
    clock, at = WallClock(minutes, "UTC"), datetime(2026, 11, 25, tzinfo=UTC)
    found: list[str] = []
    while len(found) < len(days.split(", ")):
        at = clock.next(at) or at
        found.append(f"{at:%Y-%m-%d}")

    assert days.split(", ") == found


@pytest.mark.parametrize(("rule", "words"), SIGNS)
def test_each_example_of_a_rule_means_what_the_page_says(rule: str, words: str) -> None:
    assert words == in_words(rule)


@pytest.mark.parametrize(("rule", "zone", "day", "shown"), ROWS)
def test_each_example_of_a_clock_change_is_true(rule: str, zone: str, day: str, shown: str) -> None:
    clock = ZoneInfo(zone)
    start = datetime.combine(date.fromisoformat(day), time(), clock).astimezone(UTC)
    end = datetime.combine(date.fromisoformat(day) + timedelta(1), time(), clock).astimezone(UTC)
    second = timedelta(seconds=1)

    found = CronSchedule(rule, zone).between(start - second, end - second)
    told = ", ".join(at.astimezone(clock).strftime("%H:%M %z") for at in found)
    assert (told or "never") == shown


def test_the_tables_are_found() -> None:
    assert len(ROWS) == 10
    assert min(len(SIGNS), len(RECURRENCES)) >= 8


HOOKS = text_of("how-to/hooks-and-alerts")
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
URL = "https://example.com/hooks"
BODY = '{"kind":"run_ended","error":"…"}'.encode()


@pytest.fixture
def page() -> dict[str, Any]:
    (block,) = re.findall(r"```python\n(.*?)```", HOOKS, re.S)
    names: dict[str, Any] = {"__name__": "verify"}
    exec(block, names)
    return names


def test_the_page_verifies_what_we_sign(page: dict[str, Any]) -> None:
    header = signature(["s3cret", "old"], "shop", URL, BODY, NOON)
    now = NOON.timestamp() + 5

    def is_genuine(**changes: Any) -> bool:
        given = {"secret": "s3cret", "app": "shop", "url": URL, "body": BODY, "now": now, **changes}
        return bool(page["is_genuine"](header=header, **given))

    assert is_genuine()
    assert is_genuine(secret="old")
    others = {"secret": "other", "app": "bakery", "url": f"{URL}/", "body": BODY + b"!"}
    assert not any(is_genuine(**{key: value}) for key, value in others.items())
    assert not is_genuine(now=now + 301)


def test_the_page_names_the_header_and_each_kind() -> None:
    assert f"`{SIGNATURE}: t=" in HOOKS
    assert all(f"`{kind}`" in HOOKS for kind in NoticeKind)


def test_its_settings_are_settings(tmp_path: Path) -> None:
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", HOOKS, re.S)):
        home = tmp_path / str(number)
        home.mkdir()
        (home / "config.yaml").write_text(block)

        assert load_settings(home, {}).alert.timezone in ("UTC", "Europe/Paris")


SIZING = text_of("how-to/operate/sizing")
BYTES, VACUUM = re.findall(r"^```sql\n(.*?)^```", SIZING, re.M | re.S)


@pytest.fixture
def engine(home_of: Callable[[str], Settings]) -> sa.Engine:
    """PostgreSQL: the page is about nothing else."""
    return make_engine(home_of("postgresql"))


def test_the_bytes_of_an_operation_are_those_of_its_tables(engine: sa.Engine) -> None:
    action = make_action(engine)
    for day in range(40):
        make_operation(engine, action, NOON + timedelta(days=day))

    with engine.connect() as connection:
        bytes_each = connection.exec_driver_sql(BYTES).scalar_one()

        tables = ("operations", "attempts", "operation_logs")
        sizes = [sa.select(sa.func.pg_total_relation_size(table)) for table in tables]
        assert bytes_each == sum(connection.scalar(one) or 0 for one in sizes) // 40


def test_vacuum_is_set_and_connections_are_counted(engine: sa.Engine) -> None:
    (count,) = re.findall(r"`(SELECT count\(\*\) FROM pg_stat_activity)`", SIZING)
    with engine.begin() as connection:
        connection.exec_driver_sql(VACUUM)
        assert connection.exec_driver_sql(count).scalar_one() >= 1
        options = "SELECT reloptions FROM pg_class WHERE relname = 'operations'"
        (set_to,) = connection.exec_driver_sql(options).one()

    assert "autovacuum_vacuum_scale_factor=0.02" in set_to


ROW = re.compile(r"^\| ([\d,]{6,}) \| (.*) \|$", re.M)


def test_the_table_of_how_far_it_goes_follows_from_its_formulas() -> None:
    rows = ROW.findall(SIZING)

    assert [int(number.replace(",", "")) for number, _ in rows] == [10**n for n in range(4, 8)]
    for number, cells in rows:
        a_day = int(number.replace(",", ""))
        a_second, gb = a_day / 86_400, a_day / 10**9
        shown = [float(re.match(r"[\d.]+", cell)[0]) for cell in cells.split(" | ")]  # type: ignore[index]
        assert shown == pytest.approx(
            [
                *(a_second, a_second * 0.004, a_second * 0.01, a_second * 2),
                *(gb * 2_400, gb * 7 * 800 * 1.3, gb * 90 * 800 * 1.3),
            ],
            rel=0.08,
            abs=0.005,
        )
