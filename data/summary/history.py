"""Values of earlier summaries, kept in the action's checkpoint, bounded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

# The summaries of a chart, including this one.
LONGEST_TREND = 12
# In characters, of the earlier ones: of very many domains fewer summaries are kept.
MOST_KEPT = 80_000


class Point(NamedTuple):
    """A figure's value in one summary."""

    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Past:
    """The summaries before this one, oldest first: `{"at", "domains": {name: {rows, sums}}}`."""

    summaries: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of_checkpoint(cls, kept: Mapping[str, Any], operation_id: str) -> "Past":
        """Return the summaries before the operation; a retry of it has the same past."""
        past = tuple(kept.get("past", ()))
        last = kept.get("mine")
        if kept.get("operation_id") == operation_id or last is None:
            return cls(past)
        return cls((*past, last)[-(LONGEST_TREND - 1) :])

    @property
    def last(self) -> Mapping[str, Any]:
        """The values of the last summary, by domain; empty before the first."""
        found: Mapping[str, Any] = self.summaries[-1]["domains"] if self.summaries else {}
        return found

    @property
    def last_at(self) -> datetime | None:
        """The instant of the last summary; None before the first."""
        return datetime.fromisoformat(self.summaries[-1]["at"]) if self.summaries else None

    def points(self, domain: str, column: str | None) -> tuple[Point, ...]:
        """Return the values of a column, or of the rows, oldest first."""
        found = []
        for summary in self.summaries:
            part = summary["domains"].get(domain) or {}
            value = part.get("rows") if column is None else part.get("sums", {}).get(column)
            if value is not None:
                found.append(Point(datetime.fromisoformat(summary["at"]), value))
        return tuple(found)

    def checkpoint(self, operation_id: str, now: datetime, after: dict[str, Any]) -> dict[str, Any]:
        """Return the checkpoint for the next summary."""
        this = {"at": now.astimezone(UTC).isoformat(), "domains": after}
        past = list(self.summaries)
        while past[1:] and len(json.dumps(past)) > MOST_KEPT:
            del past[0]
        return {"operation_id": operation_id, "past": past, "mine": this}
