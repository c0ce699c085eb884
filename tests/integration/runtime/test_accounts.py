"""What accounts and roles of PostgreSQL may do: those of deploy/ are what we need."""

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from cli.main import FAILED, run
from models.store.actions import cursors
from models.store.notices.alerting import NO_ALERTS
from models.tables import actions
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from scheduler.changes.default_actions import migrate
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from scheduler.tz_release import adopt_release
from tasks.built_in import built_in_steps
from tests.factories import make_action, rows_of
from tests.servers import Broker, PostgreSQL, running_cluster
from tests.ticks import LEASE, MINUTE, run_tick
from tests.transactions import execute, fetched

SCRIPT = Path(__file__).parents[3] / "deploy/postgres/accounts.sql"


@pytest.fixture
def cluster() -> Iterator[PostgreSQL]:
    """A cluster whose superuser is `administrator`, and no other account."""
    with running_cluster() as server:
        server.execute("CREATE ROLE administrator SUPERUSER LOGIN")
        _psql(server, "-c", "ALTER ROLE minutebook RENAME TO before")
        yield server


def _psql(server: PostgreSQL, *arguments: str, **environment: str) -> None:
    url = server.url("postgres").replace("minutebook@", "administrator@")
    command = [str(server.binaries / "psql"), "-qXv", "ON_ERROR_STOP=1", *arguments, url]
    subprocess.run(command, check=True, env={**os.environ, **environment})


def test_the_owner_migrates_and_the_service_ticks_without_any_other_right(
    cluster: PostgreSQL, tmp_path: Path, broker: Broker
) -> None:
    for account in ("owner", "service"):
        (tmp_path / f"{account}_password").write_text(f"{account}'s\n")
    _psql(cluster, "-f", str(SCRIPT), SECRETS=str(tmp_path))
    url = f"postgresql://minutebook@127.0.0.1:{cluster.port}/minutebook"
    service = make_engine(_settings(tmp_path, url, broker))
    as_owner = url.replace("minutebook@", "minutebook_owner@")
    owner = make_engine(_settings(tmp_path, as_owner, broker))

    migrate(owner, built_in_steps())
    adopt_release(service)
    with service.begin() as connection:
        cursors.reschedule(connection)
    report = tick(service, None, Sweeper(LEASE, NO_ALERTS))

    assert report.decided == 1
    with service.connect() as connection:
        with pytest.raises(sa.exc.ProgrammingError, match="permission denied"):
            connection.exec_driver_sql("CREATE TABLE other (id integer)")
        connection.rollback()
        ours = connection.exec_driver_sql(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE 'minutebook%%'"
            " AND NOT (rolsuper OR rolcreatedb OR rolcreaterole) ORDER BY rolname"
        )
        assert ours.scalars().all() == ["minutebook", "minutebook_owner"]
    for engine in (owner, service):
        engine.dispose()


def _settings(home: Path, url: str, broker: Broker) -> Settings:
    made = load_settings(home, {"SCHED_BROKER_URL": broker.url})
    return made.model_copy(update={"database_url": SecretStr(url)})


NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
on_postgresql = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
TABLES = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public"


@pytest.fixture
def role(settings: Settings, postgresql: PostgreSQL) -> Iterator[str]:
    """A role that owns nothing."""
    name = f"role_{make_engine(settings).url.database}"
    postgresql.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    engine = make_engine(settings)
    execute(engine, sa.text(f"DROP OWNED BY {name}"))
    engine.dispose()
    postgresql.execute(f"DROP ROLE {name}")


def as_role(settings: Settings, role: str) -> Settings:
    url = settings.database_url.get_secret_value().replace("//minutebook@", f"//{role}@")
    return settings.model_copy(update={"database_url": SecretStr(url)})


@on_postgresql
def test_a_missing_right_quarantines_nothing_and_once_given_all_is_sent(
    engine: sa.Engine, settings: Settings, role: str
) -> None:
    due = [make_action(engine, name=f"due {n}", since=NOON - MINUTE) for n in range(3)]
    limited = make_engine(as_role(settings, role))
    for right in (
        f"GRANT {TABLES} TO {role}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
        f"REVOKE INSERT ON operations FROM {role}",
    ):
        execute(engine, sa.text(right))

    with pytest.raises(sa.exc.ProgrammingError, match="permission denied for table operations"):
        run_tick(limited, NOON)
    quarantined = fetched(engine, sa.select(actions.c.quarantined)).scalars().all()
    execute(engine, sa.text(f"GRANT INSERT ON operations TO {role}"))
    report = run_tick(limited, NOON)
    limited.dispose()

    assert set(quarantined) == {None}
    assert report.sent == len(due)
    assert [row["state"] for one in due for row in rows_of(engine, one)] == ["queued"] * 3


@on_postgresql
def test_a_command_says_what_its_role_may_not_do(
    settings: Settings,
    role: str,
    postgresql: PostgreSQL,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    postgresql.execute(f"CREATE DATABASE of_{role}")
    url = postgresql.url(f"of_{role}").replace("//minutebook@", f"//{role}@")
    for name, value in (("HOME", str(settings.home)), ("DATABASE_URL", url)):
        monkeypatch.setenv(f"SCHED_{name}", value)
    engine = make_engine(settings)

    code = run(["migrate"])

    postgresql.execute(f"DROP DATABASE of_{role} WITH (FORCE)")
    engine.dispose()
    assert code == FAILED
    assert capsys.readouterr().err == (
        "error: the database refuses (SCHED_DATABASE_URL): permission denied for schema public\n"
    )
