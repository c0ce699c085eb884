"""Thirty lines of a crontab are cut over while cron runs them: nothing is lost or doubled."""

import json
import re
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from models.tables import operations
from models.values import format_instant
from runtime.clock import utc_now
from runtime.database import reading
from tests.acceptance.clocks import MINUTE, Clock
from tests.acceptance.cron_process import Line, lines_of
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, Process, python, until

THIRTY = (ROOT / "tests/unit/moving/thirty.crontab").read_text()
PROGRAM = re.compile(r"bin/([\w-]+)|(manage\.py|run-parts|mail) ")
# Each program of the crontab: it writes its name, the seconds since 1970, and the clock's shift.
SCRIPT = """#!/bin/sh
echo "$(basename "$0") $(date +%s.%N) $(cat {shift})" >>{journal}
"""


class Shop:
    """The crontab of a shop, its programs and their journal, and the clock of all."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.clock = Clock(installation)
        self.shift = installation.file("clock_shift")
        self.folder = installation.home / "shop"
        self.journal = self.folder / "journal"
        self.crontab = self.folder / "shop.crontab"
        (self.folder / "bin").mkdir(parents=True)
        self.journal.touch()
        text = THIRTY.replace("/srv/shop", str(self.folder))
        path = f"PATH={self.folder}/bin:/usr/bin:/bin"
        self.crontab.write_text(re.sub("^PATH=.*", path, text, flags=re.MULTILINE))
        self.lines = list(lines_of(self.crontab.read_text()))
        for name in {program_of(line) for line in self.lines}:
            file = self.folder / name if name == "manage.py" else self.folder / "bin" / name
            file.write_text(SCRIPT.format(shift=self.shift, journal=self.journal))
            file.chmod(0o755)

    def set_to(self, at: datetime) -> None:
        """Set the clock."""
        self.clock.set_to(at - utc_now())

    def cron(self) -> tuple[Process, datetime]:
        """Start cron; return the first minute whose lines it runs."""
        command = python("-m", "tests.acceptance.cron_process", str(self.crontab), str(self.shift))
        cron = self.installation.processes.start("cron", command, {"PYTHONPATH": str(ROOT)})
        cron.said("cron begins")
        return cron, datetime.fromisoformat(cron.text().split()[3]) + MINUTE

    def imported(self, *arguments: str, **settings: str) -> dict[str, Any]:
        """Import the crontab; return the report."""
        command = ("--json", "import", "crontab", str(self.crontab), "--zone", "UTC", *arguments)
        done = self.installation.processes.run(self.installation.command(*command), settings)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def lives(self, minute: datetime) -> None:
        """Let a minute begin, and wait until all that is due in it has run."""
        if self.installation.now() < minute:
            self.set_to(minute - timedelta(seconds=1))
        due = self.due(minute)
        until(
            lambda: due <= self.ran() and has_ended(self.installation),
            lambda: f"{minute}: {due - self.ran()}",
        )

    def due(self, minute: datetime) -> Counter[tuple[str, datetime]]:
        """Return how often each program is due in a minute."""
        return Counter((program_of(one), minute) for one in self.lines if one.is_due(minute))

    def ran(self) -> Counter[tuple[str, datetime]]:
        """Return how often each program ran in each minute."""
        rows = [line.split() for line in self.journal.read_text().splitlines(keepends=True)]
        seconds = [(name, float(at) + float(shift)) for name, at, shift in rows]
        return Counter((name, datetime.fromtimestamp(at // 60 * 60, UTC)) for name, at in seconds)


def program_of(line: Line) -> str:
    found = PROGRAM.search(line.command)
    assert found is not None, line
    return found[1] or found[2]


def has_ended(installation: Installation) -> bool:
    """Return whether no operation waits or runs."""
    states = sa.select(operations.c.id).where(
        operations.c.state.in_(("pending", "queued", "running"))
    )
    with reading(installation.engine) as connection:
        return connection.execute(states).first() is None


@pytest.mark.parametrize("store", ["sqlite"])
def test_thirty_lines_are_cut_over_while_cron_runs_them(installation: Installation) -> None:
    shop = Shop(installation)
    # When many of them are due.
    cut = datetime(utc_now().year + 2, 1, 1, tzinfo=UTC)
    shop.set_to(cut - 6 * MINUTE)
    allowed = {"SCHED_COMMANDS": ",".join(shop.imported()["commands"])}
    cron, first = shop.cron()
    installation.daemon(allowed)
    installation.worker("quick,heavy", 2, is_awaited=True, settings=allowed)
    shop.lives(first)

    shop.imported("--apply", "--cut-over", format_instant(cut), **allowed)
    for number in range(1, (cut - first) // MINUTE):
        shop.lives(first + number * MINUTE)
    # As the report says: just before the cut.
    cron.send(signal.SIGTERM)
    cron.ended()
    assert installation.now() < cut
    shop.lives(cut)
    shop.lives(cut + MINUTE)

    minutes = [first + number * MINUTE for number in range((cut - first) // MINUTE + 2)]
    due: Counter[tuple[str, datetime]] = sum(map(shop.due, minutes), Counter())
    assert len(shop.lines) == 30
    assert shop.due(cut).total() > 10
    assert shop.ran() == due
