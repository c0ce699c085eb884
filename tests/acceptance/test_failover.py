"""A replica of the broker, or of the database, takes over: daemon and workers go on."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from models.store.schema import migrate
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from tests.acceptance.installation import Installation, installed, installed_at
from tests.acceptance.processes import until
from tests.sentinel import replicated
from tests.servers import Broker, PostgreSQL, free_port, running_cluster


def goes_on(installation: Installation, fail_over: Callable[[], None]) -> None:
    """Find that one daemon and worker run what is due before and after."""
    processes = [installation.daemon(), installation.worker(is_awaited=True)]
    before = installation.operation(installation.action("before"))
    assert installation.all_end([before]) == ["success"]

    fail_over()
    after = installation.operation(installation.action("after"))

    assert installation.all_end([before, after]) == ["success"] * 2
    assert len(installation.trace.starts()) == 2
    assert [one.is_alive for one in processes] == [True, True]


def test_running_processes_follow_to_the_new_primary_of_redis(
    tmp_path_factory: pytest.TempPathFactory, home_of: Callable[[str], Settings]
) -> None:
    with (
        replicated(tmp_path_factory.mktemp("brokers")) as brokers,
        installed(home_of("sqlite"), brokers.primary, brokers.url) as installation,
    ):
        goes_on(installation, brokers.fail_over)


@pytest.fixture
def databases() -> Iterator[tuple[PostgreSQL, PostgreSQL]]:
    """A cluster, and a standby that confirms each commit of it."""
    with running_cluster() as primary:
        primary.stop()
        # A commit waits for the standby, unlike in other tests.
        primary.start(("-c", "fsync=off", "-c", "dynamic_shared_memory_type=mmap"))
        primary.execute("CREATE DATABASE failing")
        folder = primary.folder / "standby"
        folder.mkdir(mode=0o755)
        standby = PostgreSQL(folder, free_port())
        try:
            primary.follow_with(standby)
            primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.execute("SELECT pg_reload_conf()")
            yield primary, standby
        finally:
            standby.stop(signal.SIGKILL)


def test_a_standby_of_postgresql_takes_over_and_daemon_and_worker_go_on(
    databases: tuple[PostgreSQL, PostgreSQL], own_broker: Broker, tmp_path: Path
) -> None:
    primary, standby = databases
    hosts = f"host=127.0.0.1:{primary.port}&host=127.0.0.1:{standby.port}"
    url = f"postgresql://minutebook@/failing?{hosts}&target_session_attrs=read-write"
    with installed_at(url, tmp_path, own_broker) as installation:

        def is_reached() -> bool:
            try:
                installation.now()
            except Exception:  # whatever a lost connection raises
                return False
            return True

        def fail_over() -> None:
            primary.stop(signal.SIGKILL)
            # It confirmed all that the primary confirmed, and waits for none itself.
            standby.promote()
            until(is_reached, "the new primary is reached")

        goes_on(installation, fail_over)


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
