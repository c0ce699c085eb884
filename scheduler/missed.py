"""Record missed occurrences with their cause, which is a finding to be told."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from broker.in_use import settings_in_use
from models.store.actions.downtime import Span
from models.store.notices import findings
from models.store.notices.findings import Found
from models.store.notices.missed import found
from models.store.operations import record
from scheduler.decision import OVERTAKEN, TOO_LATE
from scheduler.downtime import outage_at

Rows = Sequence[dict[str, Any]]


def record_missed(connection: sa.Connection, rows: Rows, spans: Rows) -> int:
    """Record missed operations and spans, and find their causes; return how many are new."""
    if not rows and not spans:
        return 0
    last_at = max([*(row["occurrence_at"] for row in rows), *(one["last_at"] for one in spans)])
    causes = _Causes(connection, last_at)
    rows = [row | {"reason": causes.reason(row, "occurrence_at")} for row in rows]
    spans = [span | {"reason": causes.reason(span, "first_at", "last_at")} for span in spans]
    # Before what is counted for them. In one order, so that two daemons never deadlock.
    findings.note(connection, sorted(causes.found, key=lambda one: one.about))
    return record.record_missed(connection, rows, spans)


class _Causes:
    """Why occurrences up to `last_at` were missed.

    What was overtaken without an outage has no cause to be told: `catch_up: latest` asks for the
    newest alone.
    """

    def __init__(self, connection: sa.Connection, last_at: datetime) -> None:
        longest_gap = settings_in_use().scheduler.longest_gap
        self.outage: Span | None = outage_at(connection, last_at, longest_gap)
        self.down = self.outage and found(self.outage.begin, self.outage.text)
        self.day = f" | {last_at.date()}"
        self.found: set[Found] = set()

    def reason(self, row: dict[str, Any], *ends: str) -> str:
        """Return the reason with its cause: the outage, if all was missed in it."""
        outage, down, reason = self.outage, self.down, str(row["reason"])
        is_overtaken = reason.startswith(OVERTAKEN)
        is_by_time = is_overtaken or reason.startswith(TOO_LATE)
        if outage and down and is_by_time and outage.covers(row[ends[0]], row[ends[-1]]):
            self.found.add(down)
            is_one = len(ends) == 1
            return f"{reason}: {down.text}" if is_overtaken and is_one else down.text
        if not is_overtaken:
            self.found.add(found(reason, reason, self.day))
        return reason
