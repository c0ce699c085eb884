"""Count what was lost and what was doubled: when each entry was due, and when it arrived.

It knows no scheduler: all are judged by the same rule.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

# Late is not lost, but what arrives an hour later belongs to the next hour.
LATEST = timedelta(minutes=59)
# Clocks of several processes are read one after the other.
EARLIEST = timedelta(seconds=1)


@dataclass(frozen=True)
class Verdict:
    """How many runs were due, how many never arrived, and how many arrived once too often."""

    due: int
    lost: int
    doubled: int

    def __str__(self) -> str:
        return f"{self.lost:,} / {self.doubled:,}"

    def __add__(self, other: "Verdict") -> "Verdict":
        return Verdict(self.due + other.due, self.lost + other.lost, self.doubled + other.doubled)


def judge(
    due: Mapping[str, Sequence[datetime]], arrived: Iterable[tuple[str, datetime]]
) -> Verdict:
    """Give each arrival to the first due instant of its entry that has none yet.

    A due instant without an arrival was lost; an arrival without a due instant was doubled, also
    if the entry is unknown or was not due yet.
    """
    came: dict[str, list[datetime]] = defaultdict(list)
    for entry, at in arrived:
        came[entry].append(at)
    names = {*due, *came}
    verdicts = (_judge_one(sorted(due.get(one, ())), sorted(came[one])) for one in names)
    return sum(verdicts, Verdict(0, 0, 0))


def _judge_one(due: list[datetime], came: list[datetime]) -> Verdict:
    waiting, lost, doubled = list(due), 0, 0
    for at in came:
        while waiting and at - waiting[0] > LATEST:
            waiting.pop(0)
            lost += 1
        if waiting and waiting[0] - EARLIEST <= at:
            waiting.pop(0)
        else:
            doubled += 1
    return Verdict(len(due), lost + len(waiting), doubled)
