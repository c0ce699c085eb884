"""A backup is restored by the commands of the handbook: what runs again, and what does not."""

import os
import re
import signal
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from scheduler.changes import Change
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT
from tests.servers import PostgreSQL, postgresql_binaries

# PostgreSQL alone has these programs.
pytestmark = pytest.mark.parametrize("store", ["postgresql"])

PAGE = (ROOT / "docs/how-to/operate/backup-and-restore.md").read_text(encoding="utf-8")
BACK_UP, RESTORE, *_ = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)


def shell(installation: Installation, block: str) -> None:
    """Run a block of the page, in the home folder."""
    url = installation.settings.database_url.get_secret_value()
    path = f"{postgresql_binaries()}:{ROOT / '.venv/bin'}:{os.environ['PATH']}"
    done = installation.processes.run(
        ["bash", "-euo", "pipefail", "-c", block], {"DATABASE": url, "PATH": path},
        installation.home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def lose_the_database(installation: Installation, server: PostgreSQL) -> None:
    name = installation.engine.url.database
    installation.engine.dispose()
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    server.execute(f"CREATE DATABASE {name}")


def ended(installation: Installation, uids: list[UUID]) -> set[UUID]:
    """Wait until all operations of these actions have succeeded; return their ids."""
    ids = [row["id"] for row in installation.rows(*uids)]
    assert set(installation.all_end(ids)) == {"success"}
    return set(ids)


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
        instant = (self.full + timedelta(minutes=minutes, seconds=1)).isoformat()
        return self.installation.tick("--at", instant)


@pytest.fixture
def restored(installation: Installation, postgresql: PostgreSQL) -> Restored:
    """A backup, two occurrences after it, and the database of before."""
    due = installation.due_action("before the backup")
    policy, when = {"catch_up": "all"}, {"cron_rule": "* * * * *"}
    action = installation.action("every minute", when=when, policy=policy)
    # Later than now, so that no full minute passes meanwhile.
    full = installation.now().replace(second=0, microsecond=0) + timedelta(minutes=3)
    # Restoring makes the action `maintenance`, which may be due, too.
    own = [due.uid, action.uid]
    made = Restored(installation, full, action, own)
    worker = installation.worker(is_awaited=True)
    made.tick_at(0)
    made.before = ended(installation, own)
    shell(installation, BACK_UP)
    made.tick_at(2)
    made.forgotten = ended(installation, own) - made.before
    assert len(made.forgotten) == 2
    worker.send(signal.SIGTERM)
    worker.ended()
    lose_the_database(installation, postgresql)
    shell(installation, RESTORE)
    assert {row["id"] for row in installation.rows(*own)} == made.before
    installation.worker(is_awaited=True)
    return made


def test_what_is_within_the_look_back_runs_again_under_its_id(restored: Restored) -> None:
    restored.tick_at(2)

    assert ended(restored.installation, restored.own) == restored.before | restored.forgotten
    started = Counter(line.operation for line in restored.installation.trace.starts())
    once, twice = dict.fromkeys(restored.before, 1), dict.fromkeys(restored.forgotten, 2)
    assert started == once | twice


def test_what_is_older_than_the_look_back_is_recorded_as_missed(restored: Restored) -> None:
    said = restored.tick_at(30)

    rows = restored.installation.rows(restored.action.uid)
    since = [row for row in rows if row["id"] not in restored.before]
    run = [row["occurrence_at"] for row in since if row["state"] != "missed"]
    assert run == [restored.full + timedelta(minutes=minutes) for minutes in range(26, 31)]
    # The last missed ones have rows of their own; the others are counted.
    (reason,) = {row["reason"] for row in since if row["state"] == "missed"}
    assert reason.startswith("no daemon ticked from ")
    assert "missed=25" in said
