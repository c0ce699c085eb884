"""SQL sources on a real PostgreSQL and on SQLite: read only, bounded, ended in time."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from data.failures import SourceFailed, Stopped
from data.fetch.query import query
from data.settings import Settings
from runtime.clock import monotonic
from tasks.bounded.limits import Watch
from tests.pgbouncer import pooling
from tests.servers import PostgreSQL

SLEEP = "SELECT pg_sleep(6000)"
LONG = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


ORDERS = """
CREATE TABLE orders AS
SELECT 1 AS id, '007' AS code, 2.50 AS amount, '2026-11-23 06:00:00+00'::timestamptz AS at,
    DATE '2026-11-23' AS day, true AS paid, NULL::int AS note
UNION ALL
SELECT 2, '10', 12345678901234567890.5, NULL, NULL, false, 7
"""


@pytest.fixture(scope="module")
def warehouse(postgresql: PostgreSQL) -> Iterator[str]:
    postgresql.execute("CREATE DATABASE warehouse")
    url = postgresql.url("warehouse").replace("postgresql://", "postgresql+psycopg://")
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(ORDERS)
        connection.exec_driver_sql("CREATE SEQUENCE numbers")
    yield url
    postgresql.execute("DROP DATABASE warehouse WITH (FORCE)")


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Ask a query on the connection `warehouse`; return the rows that were written."""

    def ask(
        sql: str, url: str, name: str = "warehouse", watch: Watch | None = None, **fetch: Any
    ) -> list[dict[str, Any]]:
        settings = Settings.model_validate(
            {"home": tmp_path, "connections": {"warehouse": url}, "fetch": fetch}
        )
        target = tmp_path / "rows"
        query(sql, name, target, settings, watch or Watch())
        return [json.loads(line) for line in target.read_text().splitlines()]

    return ask


@pytest.fixture
def file(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "orders.db") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, code TEXT)")
        connection.execute("INSERT INTO orders VALUES (1, '007'), (2, 'a:b%c')")
    connection.close()
    return f"sqlite:///{tmp_path / 'orders.db'}"


Ask = Callable[..., list[dict[str, Any]]]


def test_rows_come_to_their_last_digit(asked: Ask, warehouse: str) -> None:
    rows = asked("SELECT * FROM orders WHERE code LIKE '%' ORDER BY id", warehouse)

    assert rows == [
        {
            "id": 1, "code": "007", "amount": "2.50", "at": "2026-11-23T06:00:00Z",
            "day": "2026-11-23", "paid": True, "note": None,
        },
        {
            "id": 2, "code": "10", "amount": "12345678901234567890.5", "at": None,
            "day": None, "paid": False, "note": 7,
        },
    ]  # fmt: skip


def test_sqlite_is_asked_too(asked: Ask, file: str) -> None:
    rows = asked("SELECT id, code FROM orders WHERE code LIKE '%:b%' OR id = 1", file)

    assert rows == [{"id": 1, "code": "007"}, {"id": 2, "code": "a:b%c"}]


@pytest.mark.parametrize(
    ("store", "sql", "refusal"),
    [
        ("postgresql", "SELECT nextval('numbers') AS n", "in a read-only transaction"),
        ("sqlite", "INSERT INTO orders (id) VALUES (9) RETURNING id", "attempt to write"),
    ],
)
def test_nothing_can_be_written(
    asked: Ask, request: pytest.FixtureRequest, store: str, sql: str, refusal: str
) -> None:
    url = request.getfixturevalue("warehouse" if store == "postgresql" else "file")

    with pytest.raises(SourceFailed, match=refusal):
        asked(sql, url)
    assert len(asked("SELECT id FROM orders", url)) == 2


def test_a_query_by_a_pooler_only_reads_and_lets_the_next_client_write(
    asked: Ask, warehouse: str, postgresql: PostgreSQL
) -> None:
    with pooling(postgresql, "transaction") as pooler:
        url = pooler.url("warehouse").replace("postgresql://", "postgresql+psycopg://")
        rows = asked("SELECT id FROM orders ORDER BY id", url)
        with pytest.raises(SourceFailed, match="in a read-only transaction"):
            asked("SELECT nextval('numbers') AS n", url)
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            number = connection.exec_driver_sql("SELECT nextval('numbers')").scalar_one()

    assert (rows, number) == ([{"id": 1}, {"id": 2}], 1)


def test_what_the_url_sets_for_its_session_holds(asked: Ask, warehouse: str) -> None:
    url = f"{warehouse}?options=-csearch_path%3Dpg_catalog"

    with pytest.raises(SourceFailed, match='relation "orders" does not exist'):
        asked("SELECT id FROM orders", url)


def test_an_unknown_connection_and_a_wrong_query_are_reported_for_good(
    asked: Ask, file: str, warehouse: str
) -> None:
    with pytest.raises(SourceFailed, match=r'"warehose" .* did you mean "warehouse"') as unknown:
        asked("SELECT 1", file, "warehose")
    with pytest.raises(SourceFailed, match='warehouse: relation "order" does not exist') as wrong:
        asked('SELECT * FROM "order"', warehouse)

    assert (unknown.value.permanent, wrong.value.permanent) == (True, True)


def test_a_column_named_twice_is_refused(asked: Ask, warehouse: str) -> None:
    with pytest.raises(SourceFailed, match='has two columns "id"'):
        asked("SELECT id, id FROM orders", warehouse)


def test_more_than_the_bound_is_refused(asked: Ask, warehouse: str) -> None:
    with pytest.raises(SourceFailed, match="returns more than SCHED_FETCH_MAX_BYTES=10000"):
        asked("SELECT generate_series(1, 1000000000) AS n", warehouse, max_bytes=10_000)


@pytest.mark.parametrize(
    ("store", "sql"),
    [
        ("postgresql", "SELECT repeat('x', 200000000) AS a"),
        ("sqlite", "SELECT hex(zeroblob(100000000)) AS a"),
    ],
)
def test_a_cell_of_hundreds_of_megabytes_ends_by_the_limit_of_memory(
    asked: Ask, request: pytest.FixtureRequest, store: str, sql: str
) -> None:
    url = request.getfixturevalue("warehouse" if store == "postgresql" else "file")

    with pytest.raises(SourceFailed, match="warehouse needs more than SCHED_FETCH_MEMORY_MB=256"):
        asked(sql, url, memory_mb=256)


def test_a_database_that_is_away_is_no_permanent_failure(asked: Ask, warehouse: str) -> None:
    url = sa.make_url(warehouse).set(port=1, password="s3cret")

    with pytest.raises(SourceFailed) as failed:
        asked("SELECT 1", url.render_as_string(hide_password=False))

    assert not failed.value.permanent
    assert "s3cret" not in str(failed.value)


@pytest.mark.parametrize(("store", "sql"), [("postgresql", SLEEP), ("sqlite", LONG)])
def test_a_query_that_takes_too_long_is_ended(
    asked: Ask, request: pytest.FixtureRequest, store: str, sql: str
) -> None:
    url = request.getfixturevalue("warehouse" if store == "postgresql" else "file")

    with pytest.raises(SourceFailed, match=r"takes longer than SCHED_FETCH_TIMEOUT_S=0\.4"):
        asked(sql, url, timeout_s=0.4)


@pytest.mark.parametrize(("store", "sql"), [("postgresql", SLEEP), ("sqlite", LONG)])
def test_a_stop_ends_the_query_at_once(
    asked: Ask, request: pytest.FixtureRequest, store: str, sql: str
) -> None:
    url = request.getfixturevalue("warehouse" if store == "postgresql" else "file")
    watch, began = Watch(), monotonic()
    threading.Timer(0.5, watch.stop).start()

    with pytest.raises(Stopped):
        asked(sql, url, watch=watch)

    assert monotonic() - began < 30


def test_the_url_of_a_connection_may_be_a_secret_elsewhere(
    asked: Ask, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE", file)

    assert asked("SELECT 1 AS one", "env:WAREHOUSE") == [{"one": 1}]
    monkeypatch.delenv("WAREHOUSE")
    with pytest.raises(SourceFailed, match="env:WAREHOUSE is not set"):
        asked("SELECT 1 AS one", "env:WAREHOUSE")


def test_a_driver_that_is_missing_is_named(asked: Ask) -> None:
    with pytest.raises(SourceFailed, match=r"warehouse cannot be used: .*MySQLdb") as failed:
        asked("SELECT 1", "mysql://u:s3cret@example.com/x")

    assert "s3cret" not in str(failed.value)
