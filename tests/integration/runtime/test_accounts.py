"""The accounts that deploy/postgres/accounts.sql makes in a new cluster are what we need."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from models.store.actions import cursors
from models.store.notices.alerting import NO_ALERTS
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from scheduler.changes.default_actions import migrate
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from scheduler.tz_release import adopt_release
from tasks.built_in import built_in_steps
from tests.servers import Broker, PostgreSQL, running_cluster
from tests.ticks import LEASE

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
