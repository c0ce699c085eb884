"""The executive summary: what each domain shows now, and what changed since the last one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from models.store.snapshots import Domain

MOST_FIGURES = 4
# Keys are numbers too, but their sums tell nobody anything.
_KEY_ENDINGS = ("id", "no", "number", "code", "year", "month", "day")


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One numeric column: its sum, the sum's change since the last summary, and its range."""

    column: str
    total: float
    change: float | None
    mean: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class DomainSummary:
    """One domain's part; `row_count` None: nothing is published yet."""

    name: str
    row_count: int | None
    change: int | None
    data_at: datetime | None
    checked_at: datetime | None
    figures: tuple[KeyFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """The executive summary of a small app; `now` is when it was made, `zone` how it is shown."""

    title: str
    now: datetime
    zone: str
    domains: tuple[DomainSummary, ...]

    @property
    def local_time(self) -> str:
        """When the summary was made, on the wall of the small app's zone."""
        return f"{self.now.astimezone(ZoneInfo(self.zone)):%d %B %Y, %H:%M} ({self.zone})"


def summarise(
    domains: Sequence[Domain], before: Mapping[str, Any]
) -> tuple[tuple[DomainSummary, ...], dict[str, Any]]:
    """Return each domain's part, and what the next summary is to be compared with.

    `before` is what the last summary gave; what is shown is production, as readers see it.
    """
    parts = tuple(_of_domain(domain, before.get(domain.name)) for domain in domains)
    after = {
        part.name: {
            "rows": part.row_count,
            "sums": {figure.column: figure.total for figure in part.figures},
        }
        for part in parts
        if part.row_count is not None
    }
    return parts, after


def age(since: datetime, now: datetime) -> str:
    """Return in words how long ago `since` was: `3 hours ago`."""
    seconds = max(now - since, timedelta(0)).total_seconds()
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _of_domain(domain: Domain, before: Mapping[str, Any] | None) -> DomainSummary:
    shown = domain.production
    if shown is None:
        return DomainSummary(domain.name, None, None, None, domain.refreshed_at)
    before = before or {}
    rows_before = before.get("rows")
    return DomainSummary(
        name=domain.name,
        row_count=shown.row_count,
        change=None if rows_before is None else shown.row_count - int(rows_before),
        data_at=shown.created_at,
        # Staging was checked; that speaks for production while both are the same.
        checked_at=domain.refreshed_at if domain.staging == shown else None,
        figures=tuple(_figures(shown.figures, before.get("sums", {}))),
    )


def _figures(figures: Mapping[str, Any], before: Mapping[str, float]) -> Iterator[KeyFigure]:
    found = 0
    for column, told in figures.get("columns", {}).items():
        if told["kind"] != "number" or _is_key(column):
            continue
        found += 1
        if found > MOST_FIGURES:
            return
        yield KeyFigure(
            column=column,
            total=told["sum"],
            change=told["sum"] - before[column] if column in before else None,
            mean=told["sum"] / told["filled"],
            least=told["min"],
            most=told["max"],
        )


def _is_key(column: str) -> bool:
    return column.lower().replace("-", "_").rpartition("_")[2] in _KEY_ENDINGS
