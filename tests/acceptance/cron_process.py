"""A cron: runs the lines of a crontab at each minute of a clock that a test sets.

`python -m tests.acceptance.cron_process CRONTAB SHIFT`: SHIFT is a file of the seconds by which its
clock goes before the right one. Lines are in UTC unless CRON_TZ names another zone.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from runtime.clock import utc_now, wait_for
from tests.unit.cron import debian

MINUTE = timedelta(minutes=1)
LONGEST_S = 600
NICKNAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A line of a crontab, with the variables above it."""

    rule: str
    command: str
    variables: Mapping[str, str]

    def is_due(self, minute: datetime) -> bool:
        """Return whether cron runs it in that minute; no clock may change near it."""
        at = minute.astimezone(ZoneInfo(self.variables.get("CRON_TZ", "UTC")))
        its = debian.fields(self.rule)
        days = (at.day in its.days, at.isoweekday() % 7 in its.weekdays)
        is_day = any(days) if its.either else all(days)
        return is_day and at.month in its.months and at.hour * 60 + at.minute in its.times

    def start(self) -> None:
        """Start its command as cron does."""
        shell, _, given = self.command.replace("\\%", "\0").partition("%")
        process = subprocess.Popen(
            [self.variables.get("SHELL", "/bin/sh"), "-c", shell.replace("\0", "%")],
            env=dict(self.variables),
            stdin=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(given.replace("%", "\n").replace("\0", "%").encode())
        process.stdin.close()


def lines_of(text: str) -> Iterator[Line]:
    """Yield the lines that run something."""
    variables: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line[0] == "#":
            continue
        if line[0].isalpha():
            name, _, value = line.partition("=")
            variables[name] = value.strip('"')
            continue
        words = line.removeprefix("-").split(None, 1 if "@" in line[:2] else 5)
        rule = NICKNAMES.get(words[0]) or " ".join(words[:5])
        yield Line(rule, words[-1], {**variables})


def main(crontab: Path, shift: Path) -> None:
    """Run what is due in each minute from the next one on, until it is stopped."""
    lines = list(lines_of(crontab.read_text()))

    last = [now(shift).replace(second=0, microsecond=0)]
    print(f"cron begins after {last[0].isoformat()}", flush=True)  # noqa: T201 - for the test
    while wait_for(lambda: now(shift) >= last[0] + MINUTE, LONGEST_S):
        last[0] += MINUTE
        for line in lines:
            if line.is_due(last[0]):
                line.start()


def now(shift: Path) -> datetime:
    """Return the clock's instant."""
    return utc_now() + timedelta(seconds=float(shift.read_text()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
