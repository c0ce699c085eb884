"""What a trace counts, and what it leaves out."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from benchmarks.traced import Trace, code_lines, figures_of
from models.values import format_instant, parse_instant


def border() -> None:
    """Stand between two stations."""


def test_a_function_and_its_file_count_once() -> None:
    trace = Trace(border.__code__, "after")
    with trace.counting("before"):
        for _ in range(2):
            parse_instant("2026-11-23T06:00:00Z", "UTC")
        border()
        format_instant(parse_instant("2026-11-23T06:00:00Z", "UTC"))

    before, after = (figures_of(name, [one]) for name, one in trace.stations.items())
    both = figures_of("both", trace.stations.values())
    assert "models/values/__init__.py" in before["names"]
    assert after["functions"] > before["functions"] > 0
    assert {**after, "station": "both"} == both


@pytest.mark.parametrize(
    ("options", "transactions"),
    [
        pytest.param({}, 1, id="one_transaction"),
        pytest.param({"isolation_level": "AUTOCOMMIT"}, 2, id="each_statement_by_itself"),
    ],
)
def test_a_transaction_counts_if_it_ran_a_statement(
    options: dict[str, str], transactions: int
) -> None:
    engine, trace = sa.create_engine("sqlite://"), Trace(border.__code__, "after")
    with trace.counting("all"), engine.connect().execution_options(**options) as connection:
        for _ in range(2):
            connection.execute(sa.text("SELECT 1"))
        connection.commit()
        with connection.begin():
            pass

    engine.dispose()
    assert (2, transactions) == (
        trace.stations["all"].statements,
        trace.stations["all"].transactions,
    )


def test_lines_are_of_code_only(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text('"""Docs."""\n\n# why\nx = (\n    1,\n)\n\n\ndef f():\n    """Docs."""\n')

    assert code_lines(str(file)) == 4
