"""The account of PostgreSQL is changed by the statements of the handbook, while processes run."""

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from models.store.schema import migrate
from runtime.config import load_settings
from runtime.database import make_engine
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, Process
from tests.servers import Broker, PostgreSQL, free_port, temporary_folder

PAGE = (ROOT / "docs/how-to/operate/secrets-and-tls.md").read_text(encoding="utf-8")
NEW_ACCOUNT, OLD_ACCOUNT_ENDS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.M | re.S)
# The cluster's superuser, as which the tests look at it, has no password; others need theirs.
PASSWORDS_ONLY = """
local all all trust
host all minutebook 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""


def start(installation: Installation) -> list[Process]:
    return [installation.daemon(), installation.worker(is_awaited=True)]


def run_one(installation: Installation, name: str) -> None:
    id = installation.operation(installation.action(name))
    assert installation.all_end([id]) == ["success"]


def carry_out(database: PostgreSQL, statements: str) -> None:
    for one in filter(None, statements.replace("minutebook", "owner").split("\n")):
        database.execute(one)


@pytest.fixture
def database() -> Iterator[PostgreSQL]:
    """A cluster that asks for passwords, with a database of an ordinary account."""
    folder = temporary_folder()
    made = PostgreSQL(folder, free_port())
    try:
        made.create()
        (made.data / "pg_hba.conf").write_text(PASSWORDS_ONLY)
        made.start()
        made.execute("CREATE ROLE owner LOGIN PASSWORD 'OLD'")
        made.execute("CREATE DATABASE rotated OWNER owner")
        yield made
    finally:
        made.stop(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def test_the_account_of_postgresql_is_changed(
    database: PostgreSQL, own_broker: Broker, tmp_path: Path
) -> None:
    old, new = (
        database.url("rotated").replace("minutebook@", f"{account}@")
        for account in ("owner:OLD", "owner_b:NEW")
    )
    url_file = tmp_path / "database_url"
    url_file.write_text(old)
    migrate(make_engine(load_settings(tmp_path, {"SCHED_DATABASE_URL": old})))
    environ = {"SCHED_DATABASE_URL": new, "SCHED_BROKER_URL": own_broker.url}
    settings = load_settings(tmp_path, environ)
    read = {"SCHED_DATABASE_URL": f"file:{url_file}"}
    carry_out(database, NEW_ACCOUNT)

    with closing(Installation("postgresql", settings, own_broker, read)) as installation:
        before = start(installation)
        run_one(installation, "both are valid")
        url_file.write_text(new)
        for one in before:
            one.send(signal.SIGTERM)
        assert [one.ended() for one in before] == [0, 0]
        after = start(installation)
        carry_out(database, OLD_ACCOUNT_ENDS)

        run_one(installation, "the old account is gone")
        with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
            psycopg.connect(old)
        assert all(one.is_alive for one in after)
        # What the new account creates belongs to the old one.
        with installation.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE later (id int)")
            owner = "SELECT tableowner FROM pg_tables WHERE tablename = 'later'"
            assert connection.exec_driver_sql(owner).scalar_one() == "owner"
