"""What earlier summaries told: kept in the action's checkpoint, bounded."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

# So many summaries does a chart show, this one included.
LONGEST_TREND = 12
# Of so many domains more than the last summary is kept.
MOST_TRENDS = 30


class Point(NamedTuple):
    """What one summary told of a figure."""

    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Past:
    """The summaries before this one, oldest first: `{"at", "domains": {name: {rows, sums}}}`."""

    summaries: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of_checkpoint(cls, kept: Mapping[str, Any], operation_id: str) -> "Past":
        """Return what is before the operation; another try of it has the same past."""
        past = tuple(kept.get("past", ()))
        mine = kept.get("mine")
        if kept.get("operation_id") == operation_id or mine is None:
            return cls(past)
        return cls((*past, mine)[-(LONGEST_TREND - 1) :])

    @property
    def last(self) -> Mapping[str, Any]:
        """What the last summary told, by domain; nothing before the first."""
        found: Mapping[str, Any] = self.summaries[-1]["domains"] if self.summaries else {}
        return found

    @property
    def last_at(self) -> datetime | None:
        """When the last summary was made; None before the first."""
        return _instant(self.summaries[-1]["at"]) if self.summaries else None

    def points(self, domain: str, column: str | None) -> tuple[Point, ...]:
        """Return what they told of a column, or of the rows, oldest first."""
        found = []
        for summary in self.summaries:
            told = summary["domains"].get(domain) or {}
            value = told.get("rows") if column is None else told.get("sums", {}).get(column)
            if value is not None:
                found.append(Point(_instant(summary["at"]), value))
        return tuple(found)

    def checkpoint(self, operation_id: str, now: datetime, after: dict[str, Any]) -> dict[str, Any]:
        """Return what to keep for the next summary."""
        mine = {"at": now.astimezone(UTC).isoformat(), "domains": after}
        past = [*map(_thinned, self.summaries[:-1]), *self.summaries[-1:]]
        return {"operation_id": operation_id, "past": past, "mine": mine}


def _thinned(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return of an older summary what charts show: rows and the first figure."""
    domains = {
        name: {"rows": told["rows"], "sums": dict(list(told["sums"].items())[:1])}
        for name, told in list(summary["domains"].items())[:MOST_TRENDS]
    }
    return {"at": summary["at"], "domains": domains}


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
