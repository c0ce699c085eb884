"""The report of a refresh: domains rewritten, reused and failed, and rows left out."""

from dataclasses import dataclass, field
from typing import Any

from data.bad_rows import BadRows
from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.values import counted


@dataclass
class Report:
    """The outcome of each of `total` domains."""

    total: int
    rewritten: dict[str, int] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)
    # Another refresh that began later has staged newer data.
    overtaken: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, Any] = field(default_factory=dict)
    is_permanent: bool = True
    is_bootstrap: bool = False
    stopped: bool = False

    @property
    def done(self) -> int:
        """The number of finished domains."""
        taken = len(self.rewritten) + len(self.reused) + len(self.overtaken)
        return taken + len(self.failed)

    def run_type(self, *, is_read: bool) -> str:
        """Return which kind of run it is if domains are read, or rewritten, or not."""
        if self.is_bootstrap:
            return "bootstrap"
        return "complete" if is_read else "cached"

    def fail(self, name: str, text: str, *, permanent: bool) -> None:
        """Record a failed domain."""
        self.failed[name] = text
        self.is_permanent &= permanent

    def leave_out(self, name: str, bad_rows: BadRows) -> None:
        """Record the rows left out of a domain, if any."""
        if bad_rows.count:
            self.left_out[name] = bad_rows.as_json()

    def result(self) -> StepResult:
        """Return the step's result. Raises StepFailed if every domain failed."""
        if self.failed and len(self.failed) == self.total:
            text = "; ".join(f"{name}: {text}" for name, text in self.failed.items())
            raise StepFailed(text, permanent=self.is_permanent)
        is_partial = bool(self.failed or self.left_out) or self.stopped
        return StepResult(
            message=self._sentence(),
            outcome=StepOutcome.PARTIAL if is_partial else StepOutcome.SUCCESS,
            details=self._details(),
        )

    def _sentence(self) -> str:
        parts = []
        if self.rewritten:
            shown = (f"{name} ({counted(rows, 'row')})" for name, rows in self.rewritten.items())
            parts.append(f"rewrote {', '.join(shown)}")
        if self.reused:
            parts.append(f"reused {', '.join(self.reused)}")
        if self.overtaken:
            parts.append(f"a later refresh staged newer data of {', '.join(self.overtaken)}")
        parts += [
            f"{counted(one['rows'], 'row')} of {name} left out"
            for name, one in self.left_out.items()
        ]
        parts += [f"{name} failed: {text}" for name, text in self.failed.items()]
        if self.stopped:
            parts.append(f"stopped after {self.done} of {self.total}")
        return "; ".join(parts) or "the small app has no domains"

    def _details(self) -> dict[str, Any]:
        return {
            "run_type": self.run_type(is_read=bool(self.rewritten)),
            "rewritten": list(self.rewritten),
            "reused": self.reused,
            "overtaken": self.overtaken,
            "rows": self.rewritten,
            "failed": self.failed,
            "left_out": self.left_out,
        }
