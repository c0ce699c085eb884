"""A replica of the broker, or of the database, takes over: daemon and workers go on."""

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from models.store.schema import migrate
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.sentinel import Replicated, replicated
from tests.servers import Broker, PostgreSQL, free_port, temporary_folder


@pytest.fixture
def brokers() -> Iterator[Replicated]:
    folder = temporary_folder()
    with replicated(folder) as made:
        yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def watched(brokers: Replicated, home_of: Callable[[str], Settings]) -> Iterator[Installation]:
    settings = home_of("sqlite").model_copy(update={"broker_url": SecretStr(brokers.url)})
    with closing(Installation("sqlite", settings, brokers.primary)) as made:
        yield made


def test_running_processes_follow_to_the_new_primary_of_redis(
    watched: Installation, brokers: Replicated
) -> None:
    daemon = watched.daemon()
    worker = watched.worker(is_awaited=True)
    before = watched.operation(watched.action("before"))
    assert watched.all_end([before]) == ["success"]

    brokers.fail_over()
    after = watched.operation(watched.action("after"))

    assert watched.all_end([after]) == ["success"]
    assert len(watched.trace.starts()) == 2
    assert daemon.is_alive
    assert worker.is_alive


@pytest.fixture
def databases() -> Iterator[tuple[PostgreSQL, PostgreSQL]]:
    """A cluster, and a standby that confirms each commit of it."""
    folder = temporary_folder()
    primary, standby = (_cluster(folder / name) for name in ("primary", "standby"))
    try:
        primary.create()
        # A commit waits for the standby, unlike in other tests.
        primary.start(("-c", "fsync=off", "-c", "dynamic_shared_memory_type=mmap"))
        primary.execute("CREATE DATABASE failing")
        primary.follow_with(standby)
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("SELECT pg_reload_conf()")
        yield primary, standby
    finally:
        for one in (primary, standby):
            one.stop(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _cluster(folder: Path) -> PostgreSQL:
    folder.mkdir(mode=0o755)
    return PostgreSQL(folder, free_port())


def test_a_standby_of_postgresql_takes_over_and_daemon_and_worker_go_on(
    databases: tuple[PostgreSQL, PostgreSQL], own_broker: Broker, tmp_path: Path
) -> None:
    primary, standby = databases
    hosts = f"host=127.0.0.1:{primary.port}&host=127.0.0.1:{standby.port}"
    url = f"postgresql://minutebook@/failing?{hosts}&target_session_attrs=read-write"
    environ = {"SCHED_DATABASE_URL": url, "SCHED_BROKER_URL": own_broker.url}
    settings = load_settings(tmp_path, environ)
    engine = make_engine(settings)
    migrate(engine)
    engine.dispose()
    with closing(Installation("postgresql", settings, own_broker)) as installation:
        daemon = installation.daemon()
        worker = installation.worker(is_awaited=True)
        before = installation.operation(installation.action("before"))
        assert installation.all_end([before]) == ["success"]

        primary.stop(signal.SIGKILL)
        # It confirmed all that the primary confirmed, and waits for none itself.
        standby.promote()
        until(lambda: _is_reached(installation), "the new primary is reached")
        after = installation.operation(installation.action("after"))

        assert installation.all_end([before, after]) == ["success"] * 2
        assert len(installation.trace.starts()) == 2
        assert daemon.is_alive
        assert worker.is_alive


def test_an_engine_of_one_address_keeps_no_connection_to_a_standby(
    databases: tuple[PostgreSQL, PostgreSQL], tmp_path: Path
) -> None:
    """A proxy has one address for both, and leads to the standby while the primary is away."""
    _, standby = databases
    engine = make_engine(load_settings(tmp_path, {"SCHED_DATABASE_URL": standby.url("failing")}))
    with pytest.raises(sa.exc.OperationalError, match="server is in hot standby mode"):
        migrate(engine)

    standby.promote()
    migrate(engine)


def _is_reached(installation: Installation) -> bool:
    try:
        installation.now()
    except Exception:  # whatever a lost connection raises
        return False
    return True
