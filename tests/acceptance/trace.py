"""What the steps of the tests did, read from the file that they append to."""

import json
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Line:
    """A step's start or end, in the order in which they happened."""

    operation: UUID
    attempt: int
    step: str
    pid: int
    what: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The side effects of all steps of one installation."""

    path: Path

    def lines(self, operation: UUID | None = None) -> list[Line]:
        """Return all whole lines, or those of one operation, oldest first."""
        if not self.path.exists():
            return []
        found = [json.loads(line) for line in self.path.read_text().splitlines()]
        lines = [Line(**{**one, "operation": UUID(one["operation"])}) for one in found]
        return [line for line in lines if operation in {None, line.operation}]

    def story(self, operation: UUID) -> list[tuple[int, str, str]]:
        """Return what one operation's steps did: (attempt, step, start or end)."""
        return [(line.attempt, line.step, line.what) for line in self.lines(operation)]

    def starts(self, operation: UUID | None = None) -> list[Line]:
        return [line for line in self.lines(operation) if line.what == "start"]
