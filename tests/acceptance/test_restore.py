"""A backup is restored by the commands of the handbook: what runs again, and what does not."""

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from scheduler.changes import Change
from tests.acceptance.installation import Installation, installed_at
from tests.acceptance.processes import ROOT, until
from tests.servers import Broker, PostgreSQL, postgresql_binaries, running_cluster
from tests.ticks import MINUTE, SECOND

PAGE = (ROOT / "docs/how-to/operate/backup-and-restore.md").read_text(encoding="utf-8")
BACK_UP, RESTORE, BASE_BACKUP, TO_AN_INSTANT = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
(ARCHIVING,) = re.findall(r"^```text\n(archive_mode.*?)^```", PAGE, re.M | re.S)
BASH = ("bash", "-euo", "pipefail", "-c")
PATH = f"{postgresql_binaries()}:{ROOT / '.venv/bin'}:{os.environ['PATH']}"


@dataclass
class Restored:
    """An installation whose last two minutes the restored backup has forgotten."""

    installation: Installation
    full: datetime
    action: Change
    own: list[UUID]
    before: set[UUID] = field(default_factory=set)
    forgotten: set[UUID] = field(default_factory=set)

    def tick_at(self, minutes: int) -> str:
        """Tick as of so many minutes after the backup; return what the daemon wrote."""
        return self.installation.tick_at(self.full + minutes * MINUTE + SECOND)

    def recorded(self) -> set[UUID]:
        return {row["id"] for row in self.installation.rows(*self.own)}

    def ended(self) -> set[UUID]:
        """Wait until all operations have succeeded; return their ids."""
        ids = self.recorded()
        assert set(self.installation.all_end([*ids])) == {"success"}
        return ids


def forgetful(
    installation: Installation, back_up: Callable[[], None], restore: Callable[[], None]
) -> Restored:
    """Make a backup, let two occurrences run after it, and restore the database of before."""
    due = installation.due_action("before the backup")
    policy, when = {"catch_up": "all"}, {"cron_rule": "* * * * *"}
    action = installation.action("every minute", when=when, policy=policy)
    # Later than now, so that no full minute passes meanwhile.
    full = installation.now().replace(second=0, microsecond=0) + 3 * MINUTE
    # Restoring makes the action `maintenance`, which may be due, too.
    made = Restored(installation, full, action, [due.uid, action.uid])
    worker = installation.worker(is_awaited=True)
    made.tick_at(0)
    made.before = made.ended()
    back_up()
    made.tick_at(2)
    made.forgotten = made.ended() - made.before
    assert len(made.forgotten) == 2
    worker.send(signal.SIGTERM)
    worker.ended()
    installation.engine.dispose()
    restore()
    assert made.recorded() == made.before
    installation.worker(is_awaited=True)
    return made


@pytest.fixture
def restored(installation: Installation, postgresql: PostgreSQL) -> Restored:
    """A dump, and the database of before."""
    url = installation.settings.database_url.get_secret_value()
    own = {"DATABASE": url, "PATH": PATH}

    def shell(block: str) -> None:
        done = installation.processes.run([*BASH, block], own, installation.home)
        assert done.returncode == 0, done.stderr

    def restore() -> None:
        name = installation.engine.url.database
        postgresql.execute(f"DROP DATABASE {name} WITH (FORCE)")
        postgresql.execute(f"CREATE DATABASE {name}")
        shell(RESTORE)

    return forgetful(installation, lambda: shell(BACK_UP), restore)


def runs_again(restored: Restored) -> None:
    """Find that what is within the look-back runs again under its id, once."""
    restored.tick_at(2)

    assert restored.ended() == restored.before | restored.forgotten
    started = Counter(line.operation for line in restored.installation.trace.starts())
    once, twice = dict.fromkeys(restored.before, 1), dict.fromkeys(restored.forgotten, 2)
    assert started == once | twice


@pytest.mark.parametrize("store", ["postgresql"])
def test_what_is_within_the_look_back_runs_again_under_its_id(restored: Restored) -> None:
    runs_again(restored)


@pytest.mark.parametrize("store", ["postgresql"])
def test_what_is_older_than_the_look_back_is_recorded_as_missed(restored: Restored) -> None:
    said = restored.tick_at(30)

    rows = restored.installation.rows(restored.action.uid)
    since = [row for row in rows if row["id"] not in restored.before]
    run = [row["occurrence_at"] for row in since if row["state"] != "missed"]
    assert run == [restored.full + minutes * MINUTE for minutes in range(26, 31)]
    # The last missed ones have rows of their own; the others are counted.
    (reason,) = {row["reason"] for row in since if row["state"] == "missed"}
    assert reason.startswith("no daemon ticked from ")
    assert "missed=25" in said


def with_archive(server: PostgreSQL, text: str) -> str:
    """Return a text of the page with the archive beside a cluster."""
    return text.replace("/archive", str(server.folder / "archive"))


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    """A cluster as the page sets it up, whose log is archived beside it."""

    def set_up(made: PostgreSQL) -> None:
        archive = made.folder / "archive"
        archive.mkdir()
        if made.account:
            shutil.chown(archive, "nobody", "nogroup")
        with (made.data / "postgresql.conf").open("a") as configuration:
            configuration.write(with_archive(made, ARCHIVING))

    with running_cluster(set_up) as made:
        made.execute("CREATE DATABASE archived")
        yield made


def test_what_came_after_an_instant_runs_again(
    server: PostgreSQL, own_broker: Broker, tmp_path: Path
) -> None:
    url = server.url("archived")
    own = {**os.environ, "PATH": PATH, "DATABASE": url, "PGDATA": str(server.data)}
    instant = ""

    def carry_out(block: str) -> None:
        command = [*server.prefix, *BASH, with_archive(server, block)]
        done = subprocess.run(
            command, cwd=server.folder, env=own, capture_output=True, text=True, check=False,
            **server.account,
        )  # type: ignore[call-overload]  # fmt: skip
        assert done.returncode == 0, done.stderr

    def ask(query: str) -> str:
        with psycopg.connect(url, autocommit=True) as connection:
            (value,) = connection.execute(query.encode()).fetchone() or (None,)
        return str(value)

    def back_up() -> None:
        nonlocal instant
        instant = ask("SELECT clock_timestamp()")

    def go_back() -> None:
        last = ask("SELECT pg_walfile_name(pg_switch_wal())")
        archived = "SELECT last_archived_wal FROM pg_stat_archiver"
        until(lambda: ask(archived) >= last, f"{last} is archived")
        server.stop()
        server.data.rename(server.folder / "lost")
        carry_out(TO_AN_INSTANT.replace("2026-11-23 09:00:00 UTC", instant))
        server.start()
        until(lambda: ask("SELECT pg_is_in_recovery()") == "False", "it takes writes")

    with installed_at(url, tmp_path, own_broker) as installation:
        carry_out(BASE_BACKUP)
        runs_again(forgetful(installation, back_up, go_back))
