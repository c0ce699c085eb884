"""A statement whose answer never comes fails, and the next one has another connection."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from runtime import answers
from runtime.config import Settings
from runtime.database import make_engine
from runtime.db_retry import persist
from tests.acceptance.proxy import Proxy

pytestmark = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)

LIMIT_S = 0.4
WRITE = "INSERT INTO installation (key, value) VALUES ('stalled', 'written')"


@pytest.fixture
def way(settings: Settings) -> Iterator[Proxy]:
    """The way to the database, which stands still in the middle of the first write."""
    port = settings.effective_database_url.port
    assert port is not None
    way = Proxy(port, command=b"INSERT INTO installation")
    yield way
    way.close()


@pytest.fixture
def engine(settings: Settings, way: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[sa.Engine]:
    monkeypatch.setattr(answers, "ANSWER_WITHIN_S", LIMIT_S)
    url = settings.effective_database_url.set(port=way.port)
    shown = SecretStr(url.render_as_string(hide_password=False))
    engine = make_engine(settings.model_copy(update={"database_url": shown}))
    yield engine
    engine.dispose()


def test_a_statement_without_an_answer_fails_as_one_of_an_unavailable_database(
    engine: sa.Engine,
) -> None:
    with (
        pytest.raises(sa.exc.OperationalError, match="did not answer within") as failed,
        engine.begin() as connection,
    ):
        connection.exec_driver_sql(WRITE)

    assert failed.value.connection_invalidated


def test_a_write_that_is_retried_succeeds_on_another_connection(
    engine: sa.Engine, way: Proxy
) -> None:
    persist(engine, lambda connection: connection.exec_driver_sql(WRITE))

    assert way.is_cut.is_set()
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT value FROM installation WHERE key = 'stalled'")
        assert found.scalar_one() == "written"


def test_a_result_that_keeps_coming_may_take_longer(engine: sa.Engine) -> None:
    pause_s = timedelta(seconds=LIMIT_S / 4).total_seconds()
    rows = f"SELECT repeat('x', 65536), pg_sleep({pause_s}) FROM generate_series(1, 8)"
    with engine.connect() as connection:
        assert len(connection.exec_driver_sql(rows).all()) == 8


def test_a_result_is_described_when_its_columns_are_read(settings: Settings) -> None:
    engine = make_engine(settings)
    with engine.connect() as connection:
        cursor: Any = connection.connection.cursor()
        cursor.execute("SELECT 1 AS first, 'x' AS second")
        described = cursor.description
        cursor.execute("SET LOCAL lock_timeout = 0")
        of_none = cursor.description
        cursor.execute("SELECT 1 AS third")
        names = [column.name for column in cursor.description]
    engine.dispose()

    assert (described is not None, of_none, names) == (True, None, ["third"])


def test_a_column_that_was_renamed_has_its_new_name_in_the_next_result(settings: Settings) -> None:
    engine = make_engine(settings)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TEMPORARY TABLE named (before INTEGER)")
        before = list(connection.exec_driver_sql("SELECT * FROM named").keys())
        connection.exec_driver_sql("ALTER TABLE named RENAME before TO after")
        after = list(connection.exec_driver_sql("SELECT * FROM named").keys())
    engine.dispose()

    assert (before, after) == (["before"], ["after"])
