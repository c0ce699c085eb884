"""Databases of a size where it matters whether a statement uses its index."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from uuid import UUID

import pytest
import sqlalchemy as sa

from benchmarks.filling import Filling, analyze, bulk_insert, fill_actions, instant, park
from broker.app import configure
from broker.in_use import settings_in_use
from models.fingerprint import operation_id
from models.operation import ENDED
from models.sql import read_clock
from models.tables import notices, operations
from runtime.config import Settings, load_settings
from runtime.database import make_engine, reading
from tests.celery_messages import allowing
from tests.integration.statements.plans import Statements
from tests.servers import Broker, PostgreSQL
from tests.ticks import MINUTE

# Beside these, no plan that reads a table from end to end is the cheapest.
ACTIONS = 30_000
DUE = 1_000
# Each due action has run so often: an index by action alone would read all of it.
HISTORY = 30
WAITING = 40
STALE = 20
_numbers = count(1)


@dataclass
class Filled:
    """A filled database: `due` actions have an occurrence at `now` and one missed before it."""

    engine: sa.Engine
    now: datetime
    due: list[UUID]


@dataclass
class Copies:
    """A filled database of each store, made when it is first wanted, and copies of it."""

    request: pytest.FixtureRequest
    folders: pytest.TempPathFactory
    broker_url: str
    filled: dict[str, tuple[Settings, datetime, list[UUID]]] = field(default_factory=dict)

    def copy(self, store: str) -> Filled:
        if store not in self.filled:
            self.filled[store] = self._fill(store)
        template, now, due = self.filled[store]
        settings = self._settings(store, template)
        configure(settings)
        return Filled(make_engine(settings), now, due)

    def _fill(self, store: str) -> tuple[Settings, datetime, list[UUID]]:
        settings = self._settings(store)
        engine = make_engine(settings)
        with reading(engine) as connection:
            now = read_clock(connection).replace(second=0, microsecond=0)
        # None of these was due in the last hour, whatever the hour.
        beside = [f"{minute} 12 1 {(now.month + 5) % 12 + 1} *" for minute in range(5)]
        of = Filling(ACTIONS, now, DUE + WAITING, behind=61 * MINUTE, beside=beside)
        due = fill_actions(engine, of)
        fill_operations(engine, due, now)
        fill_notices(engine, now)
        # Else newer operations would overtake those that wait.
        park(engine, due[:WAITING])
        analyze(engine)
        engine.dispose()
        return settings, now, due[WAITING:]

    def _settings(self, store: str, template: Settings | None = None) -> Settings:
        folder = self.folders.mktemp("filled")
        environ = {"SCHED_BROKER_URL": self.broker_url}
        if store == "postgresql":
            server: PostgreSQL = self.request.getfixturevalue("postgresql")
            name = f"filled_{next(_numbers)}"
            url = template and template.effective_database_url
            server.copy(str(url.database) if url else "template_migrated", name)
            environ["SCHED_DATABASE_URL"] = server.url(name)
        else:
            empty: Path = self.request.getfixturevalue("sqlite_template")
            shutil.copy(template.home / empty.name if template else empty, folder / empty.name)
        return load_settings(folder, environ)


@pytest.fixture(scope="session")
def copies(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _broker: Broker
) -> Copies:
    return Copies(request, tmp_path_factory, _broker.url)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, copies: Copies) -> Iterator[Filled]:
    """30,000 actions and as many operations: most ended, some of each other kind."""
    made = copies.copy(request.param)
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def quiet(request: pytest.FixtureRequest, copies: Copies) -> Iterator[Filled]:
    """The same, analysed at a moment when nothing was unstarted, running or owed."""
    made = copies.copy(request.param)
    over = {"finished_at": made.now, "waiting_for": None}
    with made.engine.begin() as connection:
        unended = operations.c.state.not_in(ENDED)
        connection.execute(sa.update(operations).where(unended).values(state="cancelled", **over))
        connection.execute(sa.update(notices).values(state="done", finished_at=made.now))
    analyze(made.engine)
    yield made
    made.engine.dispose()


@pytest.fixture
def statements(filled: Filled) -> Statements:
    return Statements(filled.engine)


@pytest.fixture
def allowed() -> Iterator[None]:
    before = settings_in_use()
    configure(allowing(before, "shop.*"))
    yield
    configure(before)


def fill_operations(engine: sa.Engine, uids: list[UUID], now: datetime) -> None:
    """Record operations of each action: the newest of some unstarted, waiting or running."""
    ids: list[str] = []

    def rows() -> Iterator[tuple[object, ...]]:
        for number, uid in enumerate(uids):
            for back in range(HISTORY):
                row = _operation(uid, number, now, back)
                ids.append(str(row[0]))
                yield row

    bulk_insert(
        engine,
        "operations",
        "id small_app_id action_uid revision occurrence_at state triggerer queue task overlap_key "
        "recorded_at not_before worker heartbeat_at finished_at waiting_for",
        rows(),
    )
    attempt = (1, "w", instant(now), "ended")
    names = "operation_id attempt worker started_at state"
    bulk_insert(engine, "attempts", names, ((id, *attempt) for id in ids))


def fill_notices(engine: sa.Engine, now: datetime) -> None:
    at = instant(now)
    bulk_insert(
        engine,
        "notices",
        "id small_app_id operation_id kind target payload state not_before created_at finished_at",
        (
            (
                *(str(UUID(int=number + 1)), 1, str(UUID(int=number + 1)), "run_ended"),
                *('{"kind": "mail", "to": "ann@example.com"}', "{}"),
                *("done" if number % 1000 else "owed", at, at, at if number % 1000 else None),
            )
            for number in range(ACTIONS // 2)
        ),
    )


def _operation(uid: UUID, number: int, now: datetime, back: int) -> tuple[object, ...]:
    occurrence = now - (back + 2) * 60 * MINUTE
    at = instant(occurrence)
    state, heartbeat, waits_for = _standing(uid, number, back, now)
    return (
        *(str(operation_id(uid, occurrence)), 1, str(uid), 1, at, state, "filled", "quick"),
        *("execute_scheduled_action_quick", str(uid), at, at),
        *("w" if heartbeat else None, heartbeat, at if back else None, waits_for),
    )


def _standing(
    uid: UUID, number: int, back: int, now: datetime
) -> tuple[str, str | None, str | None]:
    """Return state, heartbeat and what it waits for; all but an action's newest have ended."""
    fresh = instant(now)
    stale = instant(datetime(2020, 1, 1, tzinfo=UTC))
    if back:
        # Half of the actions were skipped for long.
        return ("skipped" if number % 2 else "success"), None, None
    if number < WAITING:
        # Half of them wait for what is no longer there.
        return "pending", None, str(uid)
    if number < WAITING + STALE:
        return "running", stale, None
    if number < 400:
        return "running", fresh, None
    return ("queued" if number < 800 else "success"), None, None
