"""How connections to PostgreSQL are kept, and what a transaction in no hurry waits for."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from threading import Barrier, BrokenBarrierError

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from models.errors import Refused
from models.sql import read_clock
from models.store import key_values, schema
from models.store.schema import KERNEL, SchemaNewer
from runtime import postgresql as postgresql_engine
from runtime.clock import utc_now, wait_for
from runtime.config import Settings
from runtime.database import glancing, make_engine, unhurried
from runtime.db_retry import in_transaction
from services import installation
from services.installation import Installation, migrate
from tests.servers import PostgreSQL
from tests.transactions import act, execute, fetched


@pytest.fixture
def settings(home_of: Callable[[str], Settings]) -> Settings:
    return home_of("postgresql")


def shown(connection: sa.Connection, *names: str) -> list[str]:
    return [connection.execute(sa.text(f"SHOW {name}")).scalar_one() for name in names]


def backend(engine: sa.Engine) -> int:
    with engine.begin() as connection:
        return int(connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one())


def test_a_connection_that_died_while_idle_is_replaced(
    engine: sa.Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_engine, "PING_AFTER_IDLE_S", 0.0)
    first = backend(engine)
    other = make_engine(settings)
    assert fetched(other, sa.text(f"SELECT pg_terminate_backend({first}, 5000)")).scalar_one()
    other.dispose()

    assert backend(engine) != first


def test_what_a_database_has_by_default_changes_nothing(settings: Settings) -> None:
    made = make_engine(settings)
    for default in (
        "datestyle = 'German, DMY'",
        "default_transaction_isolation = 'serializable'",
        "lock_timeout = '1ms'",
        "client_encoding = 'LATIN1'",
        "timezone = 'Asia/Tokyo'",
    ):
        execute(made, sa.text(f"ALTER DATABASE {made.url.database} SET {default}"))
    made.dispose()

    with make_engine(settings).begin() as connection:
        now = read_clock(connection)
        text = connection.execute(sa.text("SELECT 'zwölf ☂'")).scalar_one()
        in_use = shown(connection, "transaction_isolation", "lock_timeout", "timezone")

    assert abs(now - utc_now()) < timedelta(hours=1)
    assert text == "zwölf ☂"
    assert in_use == ["read committed", "0", "UTC"]


def test_what_the_url_sets_holds_beside_what_each_connection_has(settings: Settings) -> None:
    url = settings.effective_database_url.update_query_dict(
        {"options": "-csearch_path=elsewhere", "application_name": "shop", "connect_timeout": "9"}
    )
    text = SecretStr(url.render_as_string(hide_password=False))
    made = make_engine(settings.model_copy(update={"database_url": text}))
    with made.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        waits_s = driver.info.get_parameters()["connect_timeout"]
        in_use = shown(connection, "search_path", "application_name", "jit")
    made.dispose()

    assert (in_use, waits_s) == (["elsewhere", "shop", "off"], "9")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_an_empty_database_that_does_not_store_every_text_is_refused(
    settings: Settings, postgresql: PostgreSQL, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    postgresql.execute(
        f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    )
    url = SecretStr(postgresql.url(name))
    made = make_engine(settings.model_copy(update={"database_url": url}))

    with pytest.raises(Refused, match=f"stores text as {encoding}, and Minutebook needs UTF8"):
        schema.migrate(made)

    made.dispose()
    postgresql.execute(f"DROP DATABASE {name}")


def test_a_connection_in_use_is_not_asked_each_time(engine: sa.Engine) -> None:
    seen: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *args: seen.append(args[2]))

    assert backend(engine) == backend(engine)
    assert len(seen) == 2


def test_a_transaction_in_no_hurry_waits_for_no_disk_and_the_next_does(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        # The tests' server has it off.
        connection.execute(sa.text("SET synchronous_commit = on"))
    with unhurried(engine) as connection:
        first = shown(connection, "synchronous_commit")
    with engine.begin() as connection:
        second = shown(connection, "synchronous_commit")

    assert (first, second) == (["off"], ["on"])


def test_a_glance_has_no_transaction_and_leaves_none_to_the_next_user(engine: sa.Engine) -> None:
    writes = sa.text("SELECT pg_current_xact_id()")
    with glancing(engine) as connection:
        one, two = (connection.execute(writes).scalar_one() for _ in range(2))
    with engine.begin() as connection:
        three, four = (connection.execute(writes).scalar_one() for _ in range(2))

    assert one != two
    assert three == four


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_an_error_does_not_show_what_a_statement_was_given(
    home_of: Callable[[str], Settings], store: str
) -> None:
    engine = make_engine(home_of(store))
    with pytest.raises(sa.exc.SQLAlchemyError) as failed, engine.connect() as connection:
        connection.execute(sa.text("SELECT :given FROM nowhere"), {"given": "a secret"})
    engine.dispose()

    assert "FROM nowhere" in str(failed.value)
    assert "a secret" not in str(failed.value)


def test_requests_share_one_engine(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Installation(settings.home)
    migrate(opened)
    both_ask = Barrier(2)
    made: list[sa.Engine] = []

    def counted(settings: Settings, connections: int) -> sa.Engine:
        made.append(make_engine(settings, connections))
        # Leave the other time to begin, if it may.
        with suppress(BrokenBarrierError):
            both_ask.wait(0.5)
        return made[-1]

    monkeypatch.setattr(installation, "make_engine", counted)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: opened.engine, range(2))
    for one in made:
        one.dispose()

    assert (first is second, len(made)) == (True, 1)


def test_a_migration_and_a_refused_schema_keep_no_connection(settings: Settings) -> None:
    opened = Installation()
    opened.__dict__["settings"] = settings
    looker = make_engine(settings)
    its_own = "datname = current_database() AND pid <> pg_backend_pid()"

    others = sa.text(f"SELECT count(*) FROM pg_stat_activity WHERE {its_own}")

    migrate(opened)
    execute(looker, sa.text("UPDATE minutebook_version SET version_num = '9999_newer'"))
    act(looker, key_values.set_value, KERNEL.works_from, "9999_newer")
    for _ in range(2):
        with pytest.raises(SchemaNewer):
            _ = opened.engine

    assert wait_for(lambda: fetched(looker, others).scalar_one() == 0, 10)
    looker.dispose()


def test_both_of_two_transactions_that_wait_for_each_other_are_made(engine: sa.Engine) -> None:
    """The victim of the deadlock is run again."""
    first_locks, tries = Barrier(2), list[str]()

    def lock(connection: sa.Connection, name: str, *keys: int) -> None:
        tries.append(name)
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": keys[0]})
        if tries.count(name) == 1:
            first_locks.wait(20)
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": keys[1]})

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(in_transaction, engine, lambda c: lock(c, "one", 1, 2))
        other = pool.submit(in_transaction, engine, lambda c: lock(c, "other", 2, 1))
        assert (one.result(30), other.result(30)) == (None, None)

    assert sorted(tries) in (["one", "one", "other"], ["one", "other", "other"])
