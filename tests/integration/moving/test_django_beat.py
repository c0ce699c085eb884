"""The tables of django-celery-beat, made by Django itself, as entries."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from models.action.document import ParseContext
from models.errors import Refused
from moving.django_beat import entries_of
from moving.django_beat.tables import Tables, read_tables
from moving.foreign_database import foreign_database
from moving.outcomes import Outcome, outcomes
from tasks.built_in import built_in_steps
from tests.moved import document, names
from tests.servers import PostgreSQL

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None)
ROOT = Path(__file__).parents[3]


def filled(database: Mapping[str, Any]) -> None:
    """Let Django make and fill its tables in a database."""
    command = [sys.executable, "-P", "-m", "tests.django_beat", json.dumps(database)]
    subprocess.run(command, check=True, timeout=120, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    path = tmp_path_factory.mktemp("django") / "shop.db"
    filled({"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)})
    with foreign_database(f"sqlite:///{path}") as connection:
        return read_tables(connection)


@pytest.fixture(scope="module")
def found(tables: Tables) -> dict[str, Outcome]:
    """What becomes of each periodic task, by its name."""
    return {one.name: one for one in outcomes(entries_of(tables, NOW, "shop"), CONTEXT)}


def test_each_kind_of_outcome(found: Mapping[str, Outcome]) -> None:
    assert names(found, "same") == {
        "daily", "work days", "first monday", "second monday", "second half", "often",
        "from then on",
        "until then", "paused", "christmas", "once", "routed",
    }  # fmt: skip
    assert names(found, "differs") == {"at night", "sunset"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("half a second", "0.5 s is not a whole number", id="half_a_second"),
        pytest.param("expired", "it expired at 2020-01-01T00:00:00Z", id="expired"),
        pytest.param("last christmas", "its time is past (2019-12-24", id="past"),
        pytest.param("has run", "it runs once, and has run", id="has_run"),
        pytest.param("broken", "its args '[' are not JSON", id="broken"),
    ],
)
def test_what_is_refused(found: Mapping[str, Outcome], name: str, why: str) -> None:
    assert (found[name].kind, found[name].document) == ("cannot", None)
    assert why in found[name].why
    assert found[name].instead


@pytest.mark.parametrize(
    ("changes", "every"),
    [
        pytest.param({"args": 5}, 1, id="arguments"),
        pytest.param({"start_time": "0001-01-01T00:00:00+23:00"}, 1, id="before_all_time"),
        pytest.param({"start_time": "9999-12-31T23:59:59.5"}, 1, id="after_all_time"),
        pytest.param({}, "often", id="text"),
        pytest.param({}, None, id="null"),
        pytest.param({}, 10**30, id="for_ever"),
    ],
)
def test_a_row_that_only_sqlite_takes_does_not_end_the_import(
    changes: Mapping[str, object], every: object
) -> None:
    strange = {"id": 1, "name": "it", "task": "t", "enabled": 1, "interval_id": 1, **changes}
    sound = {"id": 2, "name": "two", "task": "t", "enabled": 1, "interval_id": 2}
    sound["last_run_at"] = "2026-11-22 14:00:00"
    intervals = {
        1: {"id": 1, "every": every, "period": "days"},
        2: {"id": 2, "every": 1, "period": "days"},
    }
    read = Tables((strange, sound), {"interval_id": intervals})

    one, other = outcomes(entries_of(read, NOW, "celery"), CONTEXT)

    assert (one.kind, one.name) == ("cannot", "it")
    assert (other.kind, other.name) == ("same", "two")


def test_a_crontab_task(found: Mapping[str, Outcome]) -> None:
    headers = {"periodic_task_name": "daily"}
    step = {"args": ["Paris"], "kwargs": {"dry": False}, "queue": "orders", "headers": headers}

    assert document(found, "daily") == {
        "name": "daily",
        "owner": "import:django-celery-beat",
        "operations": {"celery_task": {"task": "shop.tasks.run", **step}},
        "when": {"cron_rule": "30 7 * * *", "timezone": "Europe/Paris"},
        "policy": {"overlap": "allow"},
    }


@pytest.mark.parametrize(
    ("name", "when"),
    [
        pytest.param(
            "work days", {"cron_rule": "0 9 * * mon-fri", "timezone": "Asia/Tokyo"}, id="own_zone"
        ),
        pytest.param(
            "often", {"every": "PT15M", "starting_at": "2026-11-22T15:05:00Z"}, id="interval"
        ),
        pytest.param(
            "from then on", {"every": "PT15M", "starting_at": "2030-01-01T00:00:00Z"}, id="start"
        ),
        pytest.param("christmas", {"due_date": "2190-12-24T18:00:00Z"}, id="clocked"),
        pytest.param("once", {"due_date": "2026-11-23T06:30:00Z"}, id="next_of_a_crontab"),
    ],
)
def test_rules(found: Mapping[str, Outcome], name: str, when: object) -> None:
    assert when == document(found, name)["when"]


def test_the_rest_of_a_row(found: Mapping[str, Outcome]) -> None:
    often = document(found, "often")["operations"]["celery_task"]
    paused = document(found, "paused")

    assert (often["queue"], often["priority"], often["expires"]) == ("shop", 5, 60)
    assert often["headers"] == {"tenant": "a", "periodic_task_name": "often"}
    assert (paused["active"], paused["description"]) == (False, "Not now.")
    assert document(found, "until then")["policy"]["ends_at"] == "2040-01-01T00:00:00Z"
    routed = document(found, "routed")["operations"]["celery_task"]
    assert (routed["exchange"], routed["routing_key"]) == ("media", "video")
    assert "queue" not in routed


def test_postgresql_gives_the_same(found: Mapping[str, Outcome], postgresql: PostgreSQL) -> None:
    postgresql.execute("CREATE DATABASE django_shop")
    url = sa.make_url(postgresql.url("django_shop"))
    filled(
        {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": url.database,
            "USER": url.username,
            "PASSWORD": url.password,
            "HOST": url.host or url.query.get("host"),
            "PORT": url.port or url.query.get("port"),
        }
    )
    with foreign_database(url.render_as_string(hide_password=False)) as connection:
        tables = read_tables(connection)
        with pytest.raises(sa.exc.DBAPIError, match="read-only"):
            connection.execute(sa.text("DROP TABLE django_celery_beat_periodictask"))
    postgresql.execute("DROP DATABASE django_shop WITH (FORCE)")

    assert [*found.values()] == [*outcomes(entries_of(tables, NOW, "shop"), CONTEXT)]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        pytest.param("postgresql://u:s3cret@127.0.0.1:1/x", "cannot be read", id="away"),
        pytest.param("sqlite:////nowhere/x.db", "there is no file '/nowhere/x.db'", id="no_file"),
        pytest.param("mysql://u:s3cret@host/x", "mysql is not supported", id="another_kind"),
        pytest.param("s3cret", "is not understood", id="no_url"),
    ],
)
def test_a_database_that_cannot_be_read_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(Refused, match=why) as refused, foreign_database(url):
        pytest.fail("it was opened")

    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", ["shop.db", "shop#2.db"])
def test_the_file_is_only_read(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    sqlite3.connect(file).execute("CREATE TABLE shops (id)").connection.close()

    with foreign_database(f"sqlite:///{file}") as connection:
        assert sa.inspect(connection).get_table_names() == ["shops"]
        with pytest.raises(sa.exc.OperationalError, match="readonly"):
            connection.execute(sa.text("INSERT INTO shops VALUES (1)"))

    assert list(tmp_path.iterdir()) == [file]


def test_another_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    no_table = pytest.raises(Refused, match="has no table django_celery_beat_periodictask")
    with foreign_database(f"sqlite:///{tmp_path}/empty.db") as connection, no_table:
        read_tables(connection)
