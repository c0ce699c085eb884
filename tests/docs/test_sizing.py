"""docs/how-to/operate/sizing.md: its statements on a database with operations."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from runtime.config import Settings
from runtime.database import make_engine
from tests.factories import make_action, make_operation

PAGE = Path(__file__).parents[2] / "docs/how-to/operate/sizing.md"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TEXT = PAGE.read_text(encoding="utf-8")
BYTES, VACUUM = re.findall(r"^```sql\n(.*?)^```", TEXT, re.M | re.S)


@pytest.fixture
def engine(home_of: Callable[[str], Settings]) -> Iterator[sa.Engine]:
    """PostgreSQL: the page is about nothing else."""
    made = make_engine(home_of("postgresql"))
    yield made
    made.dispose()


def test_the_bytes_of_an_operation_are_those_of_its_tables(engine: sa.Engine) -> None:
    action = make_action(engine)
    for day in range(40):
        make_operation(engine, action, NOON + timedelta(days=day))

    with engine.connect() as connection:
        bytes_each = connection.exec_driver_sql(BYTES).scalar_one()

    tables = ("operations", "attempts", "operation_logs")
    with engine.connect() as connection:
        sizes = [
            connection.scalar(sa.select(sa.func.pg_total_relation_size(table))) for table in tables
        ]
    assert bytes_each == sum(filter(None, sizes)) // 40


def test_vacuum_is_set_and_connections_are_counted(engine: sa.Engine) -> None:
    (count,) = re.findall(r"`(SELECT count\(\*\) FROM pg_stat_activity)`", TEXT)
    with engine.begin() as connection:
        connection.exec_driver_sql(VACUUM)
        assert connection.exec_driver_sql(count).scalar_one() >= 1
        options = "SELECT reloptions FROM pg_class WHERE relname = 'operations'"
        (set_to,) = connection.exec_driver_sql(options).one()

    assert "autovacuum_vacuum_scale_factor=0.02" in set_to


ROW = re.compile(r"^\| ([\d,]{6,}) \| (.*) \|$", re.M)


def test_the_table_of_how_far_it_goes_follows_from_its_formulas() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))

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
