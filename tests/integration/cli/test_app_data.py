"""`minutebook app data`: rows of production and staging, as a user calls it."""

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from data.settings import Settings
from data.steps import publish, refresh
from data.steps.publish import PublishParameters
from data.steps.refresh import RefreshParameters
from runtime.database import make_engine
from tests.integration.cli.conftest import Call
from tests.integration.data.steps.conftest import Work

ROWS = 'id,day,paid,open,note\n1,2026-11-23,12.50,true,"a, b"\n2,2026-11-24,,false,\n'


@pytest.fixture
def settings(home_of: Callable[[str], Settings]) -> Settings:
    return home_of("sqlite")


@pytest.fixture
def home(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCHED_HOME", str(settings.home))
    return settings.home


@pytest.fixture
def shop(settings: Settings) -> Work:
    """A small app whose domain has two rows in production and three in staging."""
    work = Work(make_engine(settings), settings)
    work.apply(domains={"sales": {"source": {"file": "sales.csv"}}})
    work.write("sales.csv", ROWS)
    refresh.run(work.context(RefreshParameters()))
    publish.run(work.context(PublishParameters(data=True)))
    work.write("sales.csv", ROWS + "3,2026-11-25,1,true,\n")
    refresh.run(work.context(RefreshParameters(force=True)))
    return work


@pytest.mark.usefixtures("shop")
def test_published_rows_are_json_lines(call: Call) -> None:
    done = call("app", "data", "shop", "sales")

    assert done.code == 0
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert rows == [
        {"id": 1, "day": "2026-11-23", "paid": 12.5, "open": True, "note": "a, b"},
        {"id": 2, "day": "2026-11-24", "paid": None, "open": False, "note": ""},
    ]


def test_numbers_that_json_does_not_have_are_null(shop: Work, call: Call) -> None:
    file = shop.settings.effective_data_root / "odd.parquet"
    with duckdb.connect() as engine:
        row = "SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE, 1] AS b, 0.5::DOUBLE AS c"
        engine.execute(f"COPY ({row}) TO '{file}' (FORMAT parquet)")
    shop.apply(domains={"odd": {"source": {"file": "odd.parquet"}}})
    refresh.run(shop.context(RefreshParameters()))

    done = call("app", "data", "shop", "odd", "--staging")

    assert done.code == 0
    assert done.out == '{"a": null, "b": [null, 1.0], "c": 0.5}\n'


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        pytest.param(["shoop", "sales"], 2, 'did you mean "shop"?', id="small_app"),
        pytest.param(["shop", "sale"], 2, 'did you mean "sales"?', id="domain"),
        pytest.param(["shop", "fresh"], 2, "publish it first", id="never_published"),
        pytest.param(["shop", "sales"], 1, "is damaged; refresh with force", id="damaged"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(
    shop: Work, call: Call, arguments: list[str], code: int, told: str
) -> None:
    sales = {"source": {"file": "sales.csv"}}
    shop.apply(domains={"sales": sales, "fresh": {"source": {"file": "fresh.csv"}}})
    shown = shop.domains()["sales"].production
    assert shown is not None
    if code == 1:
        Path(shop.settings.home / shown.path).unlink()

    done = call("app", "data", *arguments)

    assert done.code == code

    assert told in done.err
    assert len(done.err.splitlines()) == 1
