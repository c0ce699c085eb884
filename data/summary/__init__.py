"""The executive summary (a report mail): each domain's state, its changes, and failures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from data.store.failures import ActionFailures
from data.store.snapshots import Domain
from data.summary.history import Past, Point
from data.summary.key_figures import KeyFigure, key_figures
from data.summary.numbers import NO_CHANGE
from models.values import counted


@dataclass(frozen=True, slots=True)
class Trend:
    """One figure over the last summaries, including this one; `label` names it."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class DomainSummary:
    """One domain's part; `row_count` is None before the first publish."""

    name: str
    row_count: int | None
    change: int | None
    data_at: datetime | None
    checked_at: datetime | None
    figures: tuple[KeyFigure, ...] = ()
    trend: Trend | None = None

    @property
    def has_changed(self) -> bool:
        """Whether the rows or a key figure differ from the last summary."""
        changes = [self.change, *(figure.change for figure in self.figures)]
        return any(abs(one or 0) >= NO_CHANGE for one in changes)


@dataclass(frozen=True, slots=True)
class Summary:
    """The executive summary of a small app, made at `now`; instants are shown in `zone`.

    `since` is the instant of the last summary, None in the first; `failures` are those after
    `watched`.
    """

    title: str
    now: datetime
    zone: str
    domains: tuple[DomainSummary, ...]
    since: datetime | None = None
    watched: datetime | None = None
    failures: tuple[ActionFailures, ...] = ()

    @property
    def local_time(self) -> str:
        """The instant of the summary, in the small app's zone."""
        return f"{self.shown(self.now)} ({self.zone})"

    def shown(self, at: datetime) -> str:
        """Return an instant as text in the small app's zone."""
        return f"{at.astimezone(ZoneInfo(self.zone)):%d %B %Y, %H:%M}"

    @property
    def is_well(self) -> bool:
        """Whether all domains are published and nothing failed."""
        return not self.failures and all(one.row_count is not None for one in self.domains)

    @property
    def sentence(self) -> str:
        """The status in one sentence."""
        return f"{self._published()}{self._changed()}, and {self._went_wrong()}."

    def _published(self) -> str:
        total = len(self.domains)
        done = sum(one.row_count is not None for one in self.domains)
        if total == 0:
            return "This small app has no domains"
        if done == 0:
            return "Nothing is published yet"
        if total == 1:
            return "Its one domain is published"
        if done == total:
            return f"{'Both' if total == 2 else f'All {total}'} domains are published"
        return f"{done} of {total} domains {'is' if done == 1 else 'are'} published"

    def _changed(self) -> str:
        if self.since is None or not any(one.row_count is not None for one in self.domains):
            return ""
        count = sum(one.has_changed for one in self.domains)
        day = f"{self.since.astimezone(ZoneInfo(self.zone)):%d %B}"
        return f", {count or 'none'} changed since {day}"

    def _went_wrong(self) -> str:
        total = sum(one.failed + one.partial + one.missed for one in self.failures)
        if not total:
            return "nothing failed"
        counts = ", ".join(
            f"{number:,} {what}"
            for what in ("failed", "partial", "missed")
            if (number := sum(getattr(one, what) for one in self.failures))
        )
        return f"{counted(total, 'run')} went wrong ({counts})"


def summarise(
    domains: Sequence[Domain], past: Past, now: datetime
) -> tuple[tuple[DomainSummary, ...], dict[str, Any]]:
    """Return each domain's part, in production, and the values for the next comparison."""
    parts = tuple(_of_domain(domain, past, now) for domain in domains)
    after = {
        part.name: {
            "rows": part.row_count,
            "sums": {figure.column: figure.value for figure in part.figures},
        }
        for part in parts
        if part.row_count is not None
    }
    return parts, after


def _of_domain(domain: Domain, past: Past, now: datetime) -> DomainSummary:
    shown = domain.production
    if shown is None:
        return DomainSummary(domain.name, None, None, None, domain.refreshed_at)
    before: Mapping[str, Any] = past.last.get(domain.name) or {}
    rows_before = before.get("rows")
    figures = tuple(key_figures(shown.figures, before.get("sums", {})))
    return DomainSummary(
        name=domain.name,
        row_count=shown.row_count,
        change=None if rows_before is None else shown.row_count - int(rows_before),
        data_at=shown.created_at,
        # The check was of staging, and holds for production while both are the same.
        checked_at=domain.refreshed_at if domain.staging == shown else None,
        figures=figures,
        trend=_trend(domain.name, shown.row_count, figures, past, now),
    )


def _trend(
    domain: str, rows: int, figures: tuple[KeyFigure, ...], past: Past, now: datetime
) -> Trend | None:
    """Return the trend of the first key figure, else of the rows; None in the first summary."""
    for figure in figures[:1]:
        points = past.points(domain, figure.column)
        if points:
            label = f"mean {figure.column}" if figure.is_mean else figure.column
            return Trend(label, (*points, Point(now, figure.value)))
    points = past.points(domain, None)
    return Trend("rows", (*points, Point(now, rows))) if points else None
