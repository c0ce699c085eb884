"""What the database's clock showed when, and which stretches of time it showed more than once.

A stretch is half-open, (after, until]. The storm's journal says how far the clock was moved and
what was decided ahead of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.chaos.facts import Row

# Around a jump nobody knows to the moment which clock a statement saw.
ABOUT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """The instants in (after, until]."""

    after: datetime
    until: datetime

    def has(self, at: datetime) -> bool:
        return self.after < at <= self.until


def repeated(journal: Sequence[Row]) -> list[Stretch]:
    """Return the stretches that may have been decided twice, ascending and apart."""
    clocks = sorted(_clocks(journal), key=lambda row: row["since"])
    found = [
        Stretch(row["since"] - ABOUT, row["at"] + ABOUT)
        for row in journal
        if row["what"] == "ahead"
    ]
    for number, later in enumerate(clocks):
        begins = later["since"] + later["shift"] - ABOUT
        for earlier in clocks[:number]:
            ended = (earlier["until"] or later["since"]) + earlier["shift"] + ABOUT
            if begins < ended - 2 * ABOUT:
                found.append(Stretch(begins, ended))
    return merged(found)


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the same instants as stretches that are apart, ascending."""
    found: list[Stretch] = []
    for one in sorted(stretches):
        if found and one.after <= found[-1].until:
            found[-1] = Stretch(found[-1].after, max(found[-1].until, one.until))
        else:
            found.append(one)
    return found


def true_instants(journal: Sequence[Row], shown: datetime) -> list[datetime]:
    """Return when it may have been that the clock showed `shown`, by a clock never set."""
    clocks = _clocks(journal)
    if not clocks:
        return [shown]
    return [
        shown - row["shift"]
        for row in clocks
        if row["since"] - ABOUT <= shown - row["shift"]
        and (row["until"] is None or shown - row["shift"] <= row["until"] + ABOUT)
    ]


def _clocks(journal: Sequence[Row]) -> list[Row]:
    return [row for row in journal if row["what"] == "clock"]
