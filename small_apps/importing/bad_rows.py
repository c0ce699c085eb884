"""Rows that are left out: how many, the first of them, and when they are too many."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from small_apps.failures import SourceFailed

MOST_SAMPLES = 10
SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One row that was left out: its line (in CSV and JSON Lines) or row, and why."""

    line: int
    column: str | None
    value: str
    why: str

    def told(self) -> dict[str, Any]:
        """Return the fault as JSON."""
        return {"line": self.line, "column": self.column, "value": self.value, "why": self.why}


@dataclass
class Faults:
    """The faults of one reading; `unit` is what its numbers count: `line` or `row`."""

    unit: str = "line"
    count: int = 0
    samples: list[Fault] = field(default_factory=list)

    def add(self, count: int, samples: Sequence[Fault]) -> None:
        """Count rows in; the first ten of all are kept."""
        self.count += count
        self.samples = sorted([*self.samples, *samples], key=lambda fault: fault.line)
        del self.samples[MOST_SAMPLES:]

    def told(self) -> dict[str, Any]:
        """Return the faults as JSON: `{"rows": 3, "samples": [{line, column, value, why}]}`."""
        return {"rows": self.count, "samples": [fault.told() for fault in self.samples]}

    def check(self, good: int, most: float, shown: str) -> None:
        """Raise SourceFailed when nothing is good, or more than the share `most` is bad."""
        if not self.count or (good and self.count <= most * (good + self.count)):
            return
        first = self.samples[0]
        where = f"{shown}, {self.unit} {first.line}"
        column = f", column {first.column}" if first.column else ""
        text = f"{where}{column} {first.value}: {first.why}"
        if self.count > 1:
            text += f"; {self.count:,} of {good + self.count:,} rows cannot be read"
        raise SourceFailed(text, permanent=True)


def short(value: object) -> str:
    """Return a value as it is shown: quoted, and not too long."""
    text = repr(value)
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"
