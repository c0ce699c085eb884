"""PostgreSQL goes back to an instant by the commands of the handbook: what runs again."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from models.store.schema import migrate
from runtime.config import load_settings
from runtime.database import make_engine
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, until
from tests.servers import Broker, PostgreSQL, free_port, temporary_folder

PAGE = (ROOT / "docs/how-to/operate/backup-and-restore.md").read_text(encoding="utf-8")
(ARCHIVING,) = re.findall(r"^```text\n(archive_mode.*?)^```", PAGE, re.M | re.S)
*_, BASE_BACKUP, TO_AN_INSTANT = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
DATABASE = "archived"


class Archived(PostgreSQL):
    """A cluster whose log is archived beside it."""

    def here(self, text: str) -> str:
        """Return a text of the page with this folder's archive."""
        return text.replace("/archive", str(self.folder / "archive"))

    def carry_out(self, block: str) -> None:
        """Run a block of the page as the account of PostgreSQL."""
        environment = {
            **os.environ,
            "PATH": f"{self.binaries}:{os.environ['PATH']}",
            "DATABASE": self.url(DATABASE),
            "PGDATA": str(self.data),
        }
        command = [*self.prefix, "bash", "-euo", "pipefail", "-c", self.here(block)]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True,
            check=False, **self.account,
        )  # type: ignore[call-overload]  # fmt: skip
        assert done.returncode == 0, done.stderr

    def ask(self, query: str) -> str:
        """Return the one value of a query, as text."""
        with psycopg.connect(self.url(DATABASE), autocommit=True) as connection:
            (value,) = connection.execute(query.encode()).fetchone() or (None,)
        return str(value)

    def archive_all(self) -> None:
        """Return when all that was written is archived."""
        last = self.ask("SELECT pg_walfile_name(pg_switch_wal())")
        until(
            lambda: self.ask("SELECT last_archived_wal FROM pg_stat_archiver") >= last,
            f"{last} is archived",
        )


@pytest.fixture
def server() -> Iterator[Archived]:
    """A cluster as the page sets it up."""
    folder = temporary_folder()
    made = Archived(folder, free_port())
    archive = folder / "archive"
    archive.mkdir()
    if made.account:
        shutil.chown(archive, "nobody", "nogroup")
    try:
        made.create()
        with (made.data / "postgresql.conf").open("a") as configuration:
            configuration.write(made.here(ARCHIVING))
        made.start()
        made.execute(f"CREATE DATABASE {DATABASE}")
        yield made
    finally:
        made.stop(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def archived(server: Archived, own_broker: Broker, tmp_path: Path) -> Iterator[Installation]:
    """An installation on that cluster."""
    environ = {"SCHED_DATABASE_URL": server.url(DATABASE), "SCHED_BROKER_URL": own_broker.url}
    settings = load_settings(tmp_path, environ)
    engine = make_engine(settings)
    migrate(engine)
    engine.dispose()
    with closing(Installation("postgresql", settings, own_broker)) as made:
        yield made


def test_what_came_after_the_instant_is_forgotten_and_runs_again(
    archived: Installation, server: Archived
) -> None:
    when, policy = {"cron_rule": "* * * * *"}, {"catch_up": "all"}
    action = archived.action("every minute", when=when, policy=policy)
    full = archived.now().replace(second=0, microsecond=0) + timedelta(minutes=3)

    def tick_at(minutes: int) -> set[UUID]:
        archived.tick("--at", (full + timedelta(minutes=minutes, seconds=1)).isoformat())
        ids = [row["id"] for row in archived.rows(action.uid)]
        assert set(archived.all_end(ids)) == {"success"}
        return set(ids)

    server.carry_out(BASE_BACKUP)
    worker = archived.worker(is_awaited=True)
    before = tick_at(0)
    instant = server.ask("SELECT clock_timestamp()")
    forgotten = tick_at(2) - before
    assert len(forgotten) == 2
    server.archive_all()
    worker.send(signal.SIGTERM)
    worker.ended()
    archived.engine.dispose()
    server.stop()
    server.data.rename(server.folder / "lost")

    server.carry_out(TO_AN_INSTANT.replace("2026-11-23 09:00:00 UTC", instant))
    server.start()
    until(lambda: server.ask("SELECT pg_is_in_recovery()") == "False", "it takes writes")

    assert {row["id"] for row in archived.rows(action.uid)} == before
    archived.worker(is_awaited=True)
    assert tick_at(2) == before | forgotten
