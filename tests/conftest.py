"""Fixtures: settings in a folder of their own, and both databases, real ones."""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pydantic import SecretStr

from broker.app import configure
from minutebook.steps import _registered
from models.store.schema import migrate
from runtime.clock import utc_now
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from runtime.logs import events
from runtime.scratch import use_scratch
from tests.compiled import share_compiled
from tests.durations import Durations
from tests.legal_moves import hold_to_legal_moves
from tests.rabbitmq import RabbitMQ, running_node
from tests.scheduling import is_of_another_day, is_on_the_other_store, is_rare, make_scheduler
from tests.servers import Broker, PostgreSQL, running_broker, running_cluster

# A test proves what is right, not how fast this machine is.
hypothesis_settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("any machine")
for wait in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, wait, 60.0)
share_compiled()

_numbers = count(1)
# What starts a server, or processes of ours: `--quick` leaves such tests out.
IN_MEMORY = SecretStr("memory://")
SERVERS = {"postgresql", "broker", "_broker", "own_broker", "rabbitmq"}
pytest_xdist_make_scheduler = make_scheduler
# Set by the run for the processes of its tests.
RUN_FOLDER = "MINUTEBOOK_TESTS_FOLDER"
DAY = "MINUTEBOOK_TESTS_DAY"


def pytest_configure(config: pytest.Config) -> None:
    """Let all that the run starts make its folders in one, which goes with the run.

    Of a killed run it goes at the next start of Minutebook. What failed tests left stays.
    """
    # Until the tests are collected there is no garbage: to look for it took a third of the time.
    gc.disable()
    os.environ.setdefault(DAY, utc_now().date().isoformat())
    if RUN_FOLDER not in os.environ:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        folder = use_scratch("t")
        # PostgreSQL refuses to run as root: its account enters.
        folder.chmod(0o711)
        os.environ[RUN_FOLDER] = os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    if "PYTEST_XDIST_WORKER" not in os.environ and config.pluginmanager.hasplugin("cacheprovider"):
        config.pluginmanager.register(Durations(config))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`, for the loop of daily work."""
    parser.addoption("--quick", action="store_true", help="what needs no server but SQLite")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for, and mark what `make test` leaves to `make test-slow`."""
    day, is_quick = os.environ[DAY], config.getoption("quick")
    left_out = {
        one for one in items if (_needs_a_server(one) if is_quick else is_of_another_day(one, day))
    }
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [one for one in items if one not in left_out]
    for one in items:
        if is_rare(one) or (not is_quick and is_on_the_other_store(one, day)):
            one.add_marker("slow")


def pytest_collection_finish() -> None:
    """Look for garbage less often, and not among the thousands of tests."""
    gc.set_threshold(50_000)
    gc.freeze()
    gc.enable()


def _needs_a_server(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    asked = set(item._fixtureinfo.names_closure)
    return bool(SERVERS & asked) or "postgresql" in item.name.partition("[")[2]


@pytest.fixture(autouse=True)
def _same_umask_after() -> Iterator[None]:
    """Commands set this process's umask; each test gives it back."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def _nothing_said_before() -> None:
    """Each test finds the lines that a process repeats rarely."""
    events._said_at.clear()


@pytest.fixture(autouse=True)
def _no_open_engines() -> Iterator[None]:
    """Close what the engines of a test keep open: since Python 3.13 SQLite warns of the rest."""
    used: set[sa.Engine] = set()

    def note(connection: sa.Connection) -> None:
        used.add(connection.engine)

    sa.event.listen(sa.Engine, "engine_connect", note)
    yield
    sa.event.remove(sa.Engine, "engine_connect", note)
    for engine in used:
        engine.dispose()


@pytest.fixture
def own_steps() -> Iterator[None]:
    """Steps that a test registers are forgotten after it."""
    before = dict(_registered)
    yield
    _registered.clear()
    _registered.update(before)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL cluster with a migrated template database."""
    with running_cluster() as server:
        server.execute("CREATE DATABASE template_migrated")
        engine = make_engine(_settings_for(server.folder, server.url("template_migrated")))
        migrate(engine)
        hold_to_legal_moves(engine)
        engine.dispose()
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    engine = make_engine(_settings_for(folder, ""))
    migrate(engine)
    hold_to_legal_moves(engine)
    engine.dispose()
    return folder / "minutebook.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(
    request: pytest.FixtureRequest, tmp_path: Path, home_of: Callable[[str], Settings]
) -> Settings:
    """Settings with a fresh, migrated database: once for each store."""
    return home_of(request.param)


@pytest.fixture
def home_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Settings]]:
    """A factory of settings on `sqlite` or `postgresql`, each with a database of its own."""
    databases: list[str] = []
    is_quick = request.config.getoption("quick")
    url = "" if is_quick else request.getfixturevalue("broker").url

    def make(store: str) -> Settings:
        if store == "sqlite":
            template = request.getfixturevalue("sqlite_template")
            shutil.copy(template, tmp_path / "minutebook.db")
            made = _settings_for(tmp_path, "", url)
            return made.model_copy(update={"broker_url": IN_MEMORY}) if is_quick else made
        server = request.getfixturevalue("postgresql")
        name = f"test_{next(_numbers)}"
        server.copy("template_migrated", name)
        databases.append(name)
        return _settings_for(tmp_path, server.url(name), url)

    yield make
    for name in databases:
        request.getfixturevalue("postgresql").execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def engine(settings: Settings) -> Iterator[sa.Engine]:
    """An engine on the fresh database of `settings`; messages go to its broker."""
    configure(settings)
    engine = make_engine(settings)
    yield engine
    engine.dispose()


@pytest.fixture
def broker(_broker: Broker) -> Broker:
    """A Redis or Valkey server that holds nothing."""
    with _broker.client() as client:
        client.flushall()
    return _broker


@pytest.fixture(scope="session")
def _broker() -> Iterator[Broker]:
    with running_broker() as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQ]:
    """A RabbitMQ node that a test may stop, empty and start again."""
    with running_node() as node:
        yield node


# The tests' own secrets may be referred to.
SECRETS = {"SCHED_SECRETS_ENV": "*", "SCHED_SECRETS_FOLDER": "/"}


def _settings_for(home: Path, database_url: str, broker_url: str = "") -> Settings:
    environ = {"SCHED_DATABASE_URL": database_url, "SCHED_BROKER_URL": broker_url, **SECRETS}
    return load_settings(home, {key: value for key, value in environ.items() if value})
