"""What a role of PostgreSQL may not do: no row is to blame for it."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from cli.main import FAILED, run
from models.tables import actions
from runtime.config import Settings
from runtime.database import make_engine
from tests.factories import make_action, rows_of
from tests.servers import PostgreSQL
from tests.ticks import MINUTE, run_tick
from tests.transactions import execute

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
pytestmark = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
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


def test_a_missing_right_quarantines_nothing_and_once_given_all_is_sent(
    engine: sa.Engine, settings: Settings, role: str
) -> None:
    due = [make_action(engine, name=f"due {n}", since=NOON - MINUTE) for n in range(3)]
    limited = make_engine(as_role(settings, role))
    with engine.begin() as connection:
        for right in (
            f"GRANT {TABLES} TO {role}",
            f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
            f"REVOKE INSERT ON operations FROM {role}",
        ):
            connection.execute(sa.text(right))

    with pytest.raises(sa.exc.ProgrammingError, match="permission denied for table operations"):
        run_tick(limited, NOON)
    with engine.begin() as connection:
        quarantined = connection.execute(sa.select(actions.c.quarantined)).scalars().all()
        connection.execute(sa.text(f"GRANT INSERT ON operations TO {role}"))
    report = run_tick(limited, NOON)
    limited.dispose()

    assert set(quarantined) == {None}
    assert report.sent == len(due)
    assert [row["state"] for one in due for row in rows_of(engine, one)] == ["queued"] * 3


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
