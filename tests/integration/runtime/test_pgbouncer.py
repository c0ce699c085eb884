"""An installation whose processes reach PostgreSQL by way of a PgBouncer with its defaults."""

import json
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from cli.main import run
from runtime.config import Settings
from tests.pgbouncer import PgBouncer, pooling
from tests.servers import PostgreSQL

# The driver prepares a statement at its sixth execution.
OFTEN = 8


@pytest.fixture(scope="module", params=["session", "transaction"])
def pooler(request: pytest.FixtureRequest, postgresql: PostgreSQL) -> Iterator[PgBouncer]:
    """A pooler of that mode."""
    with pooling(postgresql, request.param) as made:
        yield made


@pytest.fixture
def settings(home_of: Callable[[str], Settings], pooler: PgBouncer) -> Settings:
    """Settings of a fresh database by way of the pooler."""
    made = home_of("postgresql")
    url = SecretStr(pooler.url(str(made.effective_database_url.database)))
    return made.model_copy(update={"database_url": url})


def test_a_connection_by_it_has_all_that_a_direct_one_has(engine: sa.Engine) -> None:
    names = ("statement_timeout", "idle_in_transaction_session_timeout", "timezone", "jit")
    with engine.connect() as connection:
        shown = [connection.execute(sa.text(f"SHOW {name}")).scalar_one() for name in names]

    assert shown == ["1min", "30s", "UTC", "off"]


def test_the_statements_of_connections_that_share_a_session_are_kept_apart(
    engine: sa.Engine,
) -> None:
    with engine.connect() as first, engine.connect() as second:
        answers = []
        for _ in range(OFTEN):
            for connection, text in ((first, "SELECT 'first'"), (second, "SELECT 'second'")):
                answers.append(connection.execute(sa.text(text)).scalar_one())
                connection.commit()

    assert answers == ["first", "second"] * OFTEN


def test_doctor_warns_of_a_pooler_that_shares_sessions(
    engine: sa.Engine,
    settings: Settings,
    pooler: PgBouncer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SCHED_DATABASE_URL", settings.database_url.get_secret_value())

    run(["doctor", "--json", "--home", str(settings.home)])

    found = [one for one in json.loads(capsys.readouterr().out) if one["what"] == "database"]
    levels = ["ok", "warning"] if pooler.mode == "transaction" else ["ok"]
    assert [one["level"] for one in found] == levels
