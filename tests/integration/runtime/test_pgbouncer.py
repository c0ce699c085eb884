"""An installation whose processes reach PostgreSQL by way of a PgBouncer with its defaults."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from runtime.config import Settings
from runtime.database import glancing, one_snapshot, reading
from tests.pgbouncer import PgBouncer, pooling
from tests.servers import PostgreSQL

# The driver prepares a statement at its sixth execution.
OFTEN = 8
NAMES = (
    "statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout", "random_page_cost",
    "jit", "timezone", "datestyle",
)  # fmt: skip
OURS = ["1min", "30s", "0", "1.1", "off", "UTC", "ISO, MDY"]


@pytest.fixture(scope="module", params=["session", "transaction"])
def pooler(request: pytest.FixtureRequest, postgresql: PostgreSQL) -> Iterator[PgBouncer]:
    with pooling(postgresql, request.param) as made:
        yield made


@pytest.fixture
def settings(home_of: Callable[[str], Settings], pooler: PgBouncer) -> Settings:
    """Settings of a fresh database by way of the pooler."""
    made = home_of("postgresql")
    url = SecretStr(pooler.url(str(made.effective_database_url.database)))
    return made.model_copy(update={"database_url": url})


def shown(connection: sa.Connection) -> list[str]:
    return [connection.execute(sa.text(f"SHOW {name}")).scalar_one() for name in NAMES]


@pytest.mark.parametrize("opened", [reading, glancing, one_snapshot, sa.Engine.begin])
def test_a_transaction_by_it_has_all_that_a_direct_one_has(
    engine: sa.Engine, opened: Callable[[sa.Engine], AbstractContextManager[sa.Connection]]
) -> None:
    for _ in range(2):
        with opened(engine) as connection:
            assert shown(connection) == OURS


def test_the_next_client_of_a_session_inherits_nothing(
    engine: sa.Engine, settings: Settings, pooler: PgBouncer, postgresql: PostgreSQL
) -> None:
    with engine.begin() as connection:
        session = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
    with glancing(engine) as connection:
        assert shown(connection) == OURS
    engine.dispose()

    name = str(settings.effective_database_url.database)
    urls = (
        one.url(name).replace("postgresql:", "postgresql+psycopg:") for one in (pooler, postgresql)
    )
    by_pooler, direct = (sa.create_engine(url, poolclass=sa.NullPool) for url in urls)
    with by_pooler.connect() as next_client, direct.connect() as untouched:
        its = next_client.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
        assert (its, shown(next_client)) == (session, shown(untouched))


def test_statements_of_connections_that_share_a_session_are_kept_apart(engine: sa.Engine) -> None:
    with engine.connect() as first, engine.connect() as second:
        answers = []
        for _ in range(OFTEN):
            for connection, text in ((first, "SELECT 'first'"), (second, "SELECT 'second'")):
                answers.append(connection.execute(sa.text(text)).scalar_one())
                connection.commit()

    assert answers == ["first", "second"] * OFTEN
