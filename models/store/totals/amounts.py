"""Totals that only grow, from which `/metrics` answers: pure.

What ended is counted once, when it is older than any transaction that could still be open, so the
counts survive the pruning of rows, restarts, and a change of daemon.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from models.operation import OUTCOMES, TICKED, OperationState
from models.stored import instant_in

# The whole installation stands in the place of a small app.
INSTALLATION = 0
# Of notices about the installation, which count as those of an unknown app.
NO_APP = -1
# The parts of a histogram beside its buckets, and the only part of a counter.
SUM, COUNT = "sum", ""
# Upper ends of the buckets, in seconds: of what a person waits for, and of what takes long.
SHORT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LONG = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0)
BUCKETS: Mapping[str, tuple[float, ...]] = {
    "tick": SHORT,
    "tick_lag": SHORT,
    "publish": SHORT,
    "lateness": SHORT,
    "wait": SHORT,
    "operation": LONG,
    "step": LONG,
}


class Key(NamedTuple):
    """What one row counts: `label` is a state, a queue or a step, `part` a bucket's upper end."""

    small_app_id: int
    name: str
    label: str = ""
    part: str = COUNT


@dataclass
class Totals:
    """Amounts to add to the stored totals."""

    amounts: Counter[Key] = field(default_factory=Counter)

    def add(self, name: str, label: str = "", *, app: int = INSTALLATION, by: float = 1) -> None:
        """Count something; nothing is stored for 0."""
        if by > 0:
            self.amounts[Key(app, name, label)] += by  # type: ignore[assignment]

    def observe(self, name: str, seconds: float | None, label: str = "") -> None:
        """Count a duration in the histogram of that name; None and less than 0 are no duration."""
        if seconds is None or seconds < 0:
            return
        bucket = next((end for end in BUCKETS[name] if seconds <= end), float("inf"))
        self.amounts[Key(INSTALLATION, name, label, f"{bucket:g}")] += 1
        self.amounts[Key(INSTALLATION, name, label, SUM)] += seconds  # type: ignore[assignment]

    def add_ended(self, rows: Iterable[Any]) -> None:
        """Count ended operations: their outcomes, and how long what ran took."""
        for row in rows:
            if row.state == OperationState.MISSED:
                self.add("missed", app=row.small_app_id)
                continue
            self.add("ended", row.state, app=row.small_app_id)
            if row.state in OUTCOMES and row.first_started_at is not None:
                self._add_run(row)

    def _add_run(self, row: Any) -> None:
        self.observe("operation", _between(row.started_at, row.finished_at), row.queue)
        if row.attempt == 1:
            self.observe("wait", _between(row.recorded_at, row.first_started_at), row.queue)
            if row.cause in TICKED:
                self.observe("lateness", _between(row.occurrence_at, row.first_started_at))
        for step in row.steps or ():
            ends = (instant_in(step.get("started_at")), instant_in(step.get("finished_at")))
            self.observe("step", _between(*ends), step["name"])


def _between(since: datetime | None, until: datetime | None) -> float | None:
    return None if since is None or until is None else (until - since).total_seconds()
