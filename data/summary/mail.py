"""The executive summary as a mail: what production holds now, as text and as HTML for a phone."""

from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from jinja2 import Environment, StrictUndefined

from data.store import snapshots
from data.store.failures import failures_since
from data.summary import DomainSummary, Summary, Trend, summarise
from data.summary.bars import Chart, chart_of
from data.summary.history import Past, Point
from data.summary.numbers import MINUS, age, shown_change, shown_number
from minutebook.steps import SmallApp
from models.sql import read_clock
from models.store import tenants
from models.values import counted
from runtime.database import reading
from tasks.outgoing.mail.message import Content

STEP = "send_execsum"
# The period of failures in the first summary.
FIRST_LOOK_BACK = timedelta(days=7)
# This many domains have a card; the others show rows and change only.
MOST_CARDS = 10
MOST_FAILURES = 10
LONGEST_ERROR = 160


def summary_of(
    engine: sa.Engine, app: SmallApp, past: Past, operation_id: UUID
) -> tuple[Summary, dict[str, object]]:
    """Return the summary as of now, and its values for the next comparison.

    Failures of the operation itself, which is writing it, are ignored.
    """
    with reading(engine) as connection:
        now = read_clock(connection)
        document = tenants.document_of(connection, app.id)
        domains = snapshots.domains_of(connection, app.id)
        watched = past.last_at or now - FIRST_LOOK_BACK
        failures = failures_since(connection, app.id, watched, operation_id)
    parts, kept = summarise(domains, past, now)
    title = document.get("title") or app.name
    summary = Summary(title, now, app.zone, parts, past.last_at, watched, tuple(failures))
    return summary, kept


def content_of(summary: Summary) -> Content:
    """Return a summary as the content of a mail."""
    return Content(
        subject=f"{summary.title}: summary of {summary.local_time}",
        text=render_text(summary),
        html=render_html(summary),
    )


def in_order(summary: Summary) -> tuple[DomainSummary, ...]:
    """Return the domains in display order; if not all have a card, changed ones come first."""
    if len(summary.domains) <= MOST_CARDS:
        return summary.domains
    return tuple(sorted(summary.domains, key=lambda part: not part.has_changed))


def render_text(summary: Summary) -> str:
    """Return the summary as plain text."""
    return _rendered("page.txt", summary)


def render_html(summary: Summary) -> str:
    """Return the summary as one HTML page, every value escaped."""
    return _rendered("page.html", summary)


def described(trend: Trend) -> str:
    """Return a chart in words, for those who do not see it."""
    first, last = trend.points[0].value, trend.points[-1].value
    return (
        f"{trend.label} in the last {len(trend.points)} summaries: from {shown_number(first)} to "
        f"{shown_number(last)}"
    )


def _rendered(name: str, summary: Summary) -> str:
    source = files("data.summary").joinpath(name).read_text(encoding="utf-8")
    template = _environment(escapes=name.endswith(".html")).from_string(source)
    parts = in_order(summary)
    return template.render(
        summary=summary,
        cards=parts[:MOST_CARDS],
        others=parts[MOST_CARDS:],
        failures=summary.failures[:MOST_FAILURES],
        more_failures=max(0, len(summary.failures) - MOST_FAILURES),
    )


def _chart(trend: Trend, zone: str) -> Chart:
    local = ZoneInfo(zone)
    return chart_of([Point(at.astimezone(local), value) for at, value in trend.points])


def _tint(value: float) -> str:
    shown = shown_change(value)
    return "down" if shown.startswith(MINUS) else "up" if shown.startswith("+") else "flat"


def _freshness(part: DomainSummary, now: datetime) -> str:
    data = f"data of {age(part.data_at, now)}" if part.data_at else ""
    checked = f", checked {age(part.checked_at, now)}" if part.checked_at else ""
    return data + checked


def _first_line(text: str) -> str:
    # Stored errors are one line, in which line breaks are escaped.
    line = text.strip().partition("\\n")[0]
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 1] + "…"


@cache
def _environment(*, escapes: bool) -> Environment:
    made = Environment(
        autoescape=escapes,  # noqa: S701 - plain text has nothing to escape
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": shown_number,
        "change": shown_change,
        "chart": _chart,
        "counted": counted,
        "described": described,
        "first_line": _first_line,
        "freshness": _freshness,
        "tint": _tint,
    }
    return made
