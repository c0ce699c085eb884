"""Passwords of the servers are changed by the statements of the handbook, while processes run."""

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from pydantic import SecretStr
from redis.backoff import NoBackoff
from redis.retry import Retry

from models.store.schema import migrate
from runtime.clock import wait_for
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, Process
from tests.servers import (
    START_S,
    Broker,
    PostgreSQL,
    free_port,
    redis_binary,
    running_broker,
    temporary_folder,
)  # fmt: skip

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


def restart(processes: list[Process], start: Callable[[], list[Process]]) -> list[Process]:
    """Let new processes take the place of others."""
    for one in processes:
        one.send(signal.SIGTERM)
    assert [one.ended() for one in processes] == [0] * len(processes)
    return start()


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
    after = restart(before, start)
    run_one(installation, "restarted")
    return after


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
    settings = load_settings(
        tmp_path, {"SCHED_DATABASE_URL": new, "SCHED_BROKER_URL": own_broker.url}
    )
    read = {"SCHED_DATABASE_URL": f"file:{url_file}"}
    installation = Installation("postgresql", settings, own_broker, read)

    def carry_out(statements: str) -> None:
        for one in filter(None, statements.replace("minutebook", "owner").split("\n")):
            database.execute(one)

    try:
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
    finally:
        installation.close()


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
        with (self.folder / "log").open("ab") as log:
            command = [redis_binary(), str(file)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        assert wait_for(self.answers, START_S), (self.folder / "log").read_text()[-2000:]

    def client(self, database: int = 0) -> redis.Redis:
        """Return a client with the password of now."""
        its: dict[str, Any] = {"port": self.port, "password": self.password, "db": database}
        return redis.Redis(**its, retry=Retry(NoBackoff(), 0))

    def url_with(self, password: str) -> str:
        """Return the broker's URL."""
        return self.url.replace("//", f"//:{password}@")


@pytest.fixture
def with_password() -> Iterator[WithPassword]:
    with running_broker(WithPassword) as made:
        assert isinstance(made, WithPassword)
        yield made


def test_the_password_of_redis_is_changed(
    with_password: WithPassword, home_of: Callable[[str], Settings], tmp_path: Path
) -> None:
    server = with_password
    old, new = server.url_with("OLD"), server.url_with("NEW")
    url_file = tmp_path / "broker_url"
    url_file.write_text(old)
    settings = home_of("sqlite").model_copy(update={"broker_url": SecretStr(new)})
    read = {"SCHED_BROKER_URL": f"file:{url_file}"}
    installation = Installation("sqlite", settings, server, read)

    def carry_out(block: str) -> None:
        for line in block.splitlines():
            with server.client() as client:
                client.execute_command(*shlex.split(line)[1:])

    try:
        processes = rotated(installation, url_file, new, lambda: carry_out(NEW_PASSWORD))
        server.password = "NEW"
        carry_out(OLD_PASSWORD_ENDS)
        server.stop()
        server.start()

        run_one(installation, "the old password is gone")
        with pytest.raises(redis.AuthenticationError):
            redis.Redis.from_url(old).ping()
        assert all(one.is_alive for one in processes)
    finally:
        installation.close()
