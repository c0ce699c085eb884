"""Passwords of the servers are changed by the statements of the handbook, while processes run."""

import re
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from models.store.schema import migrate
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from tests.acceptance.installation import Installation, installed
from tests.acceptance.processes import ROOT, Process
from tests.servers import (
    Broker,
    PostgreSQL,
    await_answer,
    launched,
    redis_binary,
    running_broker,
    running_cluster,
)

PAGE = (ROOT / "docs/how-to/operate/secrets-and-tls.md").read_text(encoding="utf-8")
NEW_ACCOUNT, OLD_ACCOUNT_ENDS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.M | re.S)
NEW_PASSWORD, OLD_PASSWORD_ENDS = re.findall(r"^```sh\n(redis-cli .*?)^```", PAGE, re.M | re.S)
# The cluster's superuser, as which the tests look at it, has no password; others need theirs.
PASSWORDS_ONLY = """
local all all trust
host all minutebook 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""


def run_one(installation: Installation, name: str) -> None:
    id = installation.operation(installation.action(name))
    assert installation.all_end([id]) == ["success"]


def rotated(
    installation: Installation, url_file: Path, url: str, change: Callable[[], None]
) -> list[Process]:
    """Begin the change, let an operation run before and after the restart; return the processes."""

    def start() -> list[Process]:
        return [installation.daemon(), installation.worker(is_awaited=True)]

    before = start()
    run_one(installation, "before")
    change()
    run_one(installation, "both are valid")
    url_file.write_text(url)
    for one in before:
        one.send(signal.SIGTERM)
    assert [one.ended() for one in before] == [0, 0]
    after = start()
    run_one(installation, "restarted")
    return after


def test_the_account_of_postgresql_is_changed(own_broker: Broker, tmp_path: Path) -> None:
    def ask_for_passwords(made: PostgreSQL) -> None:
        (made.data / "pg_hba.conf").write_text(PASSWORDS_ONLY)

    url_file = tmp_path / "database_url"
    with running_cluster(ask_for_passwords) as database:

        def carry_out(statements: str) -> None:
            for one in filter(None, statements.replace("minutebook", "owner").split("\n")):
                database.execute(one)

        carry_out("CREATE ROLE owner LOGIN PASSWORD 'OLD'\nCREATE DATABASE rotated OWNER owner")
        old, new = (
            database.url("rotated").replace("minutebook@", f"{account}@")
            for account in ("owner:OLD", "owner_b:NEW")
        )
        url_file.write_text(old)
        migrate(make_engine(load_settings(tmp_path, {"SCHED_DATABASE_URL": old})))
        settings = load_settings(tmp_path, {"SCHED_DATABASE_URL": new})
        read = {"SCHED_DATABASE_URL": f"file:{url_file}"}
        with installed(settings, own_broker, **read) as installation:
            carry_out(NEW_ACCOUNT)
            processes = rotated(installation, url_file, new, lambda: None)
            carry_out(OLD_ACCOUNT_ENDS)

            run_one(installation, "the old account is gone")
            with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
                psycopg.connect(old)
            assert all(one.is_alive for one in processes)
            # What the new account creates belongs to the old one.
            with installation.engine.begin() as connection:
                connection.exec_driver_sql("CREATE TABLE later (id int)")
                owner = "SELECT tableowner FROM pg_tables WHERE tablename = 'later'"
                assert connection.exec_driver_sql(owner).scalar_one() == "owner"


class WithPassword(Broker):
    """A Redis whose configuration file holds its password."""

    password = "OLD"

    def start(self) -> None:
        """Start the server from its file, which it may have changed."""
        file = self.folder / "redis.conf"
        if not file.exists():
            file.write_text(
                f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\nappendonly yes\n"
                f"requirepass {self.password}\n"
            )
        self.process = launched([redis_binary(), str(file)], self.folder)
        await_answer(self.answers, self.folder)

    def client(self, database: int = 0) -> redis.Redis:
        """Return a client with the password of now."""
        password = self.password
        return redis.Redis(port=self.port, password=password, retry=Retry(NoBackoff(), 0))


@pytest.fixture
def server() -> Iterator[Broker]:
    with running_broker(WithPassword) as made:
        yield made


def test_the_password_of_redis_is_changed(
    server: WithPassword, home_of: Callable[[str], Settings], tmp_path: Path
) -> None:
    old, new = (server.url.replace("//", f"//:{password}@") for password in ("OLD", "NEW"))
    url_file = tmp_path / "broker_url"
    url_file.write_text(old)

    def carry_out(block: str) -> None:
        for line in block.splitlines():
            with server.client() as client:
                client.execute_command(*shlex.split(line)[1:])

    read = {"SCHED_BROKER_URL": f"file:{url_file}"}
    with installed(home_of("sqlite"), server, new, **read) as installation:
        processes = rotated(installation, url_file, new, lambda: carry_out(NEW_PASSWORD))
        server.password = "NEW"
        carry_out(OLD_PASSWORD_ENDS)
        server.stop()
        server.start()

        run_one(installation, "the old password is gone")
        with pytest.raises(redis.AuthenticationError):
            redis.Redis.from_url(old).ping()
        assert all(one.is_alive for one in processes)
