"""Rows that an import leaves out: their count, the first ten, and the limit."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from data.failures import SourceFailed

MOST_SAMPLES = 10
SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True, order=True)
class BadRow:
    """One row left out: its line (in CSV and JSON Lines) or row number, and the reason."""

    line: int
    column: str | None
    value: str
    why: str


@dataclass
class BadRows:
    """The rows left out of one read; `unit` is what their numbers count: `line` or `row`."""

    unit: str = "line"
    count: int = 0
    samples: list[BadRow] = field(default_factory=list)

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Return those of a child process's answer."""
        return cls(found["unit"], found["count"], [BadRow(**one) for one in found["samples"]])

    def add(self, count: int, samples: Sequence[BadRow]) -> None:
        """Add `count` rows; keep the first ten of all samples."""
        self.count += count
        self.samples = sorted([*self.samples, *samples], key=lambda row: row.line)
        del self.samples[MOST_SAMPLES:]

    def as_json(self) -> dict[str, Any]:
        """Return `{"rows": 3, "samples": [{line, column, value, why}]}`."""
        return {"rows": self.count, "samples": [asdict(row) for row in self.samples]}

    def check(self, good: int, most: float, shown: str) -> None:
        """Raise SourceFailed if no row is good, or a share above `most` is bad."""
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
    """Return a value as shown: quoted, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"
