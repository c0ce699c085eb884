"""The executive summary as a mail: what production holds now, written with its charts."""

from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from data.store import snapshots
from data.store.failures import failures_since
from data.summary import Summary, summarise
from data.summary.charts import drawn
from data.summary.history import Past, Point
from data.summary.page import MOST_CARDS, in_order, render_html, render_text
from minutebook.steps import SmallApp
from models.errors import Refused
from models.sql import read_clock
from models.store import tenants
from runtime.database import reading
from runtime.extras import HOW_TO_INSTALL, is_installed
from tasks.outgoing.mail.message import Content, Image

STEP = "send_execsum"
# The period of failures in the first summary.
FIRST_LOOK_BACK = timedelta(days=7)


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


def content_of(summary: Summary, home: Path, *, has_charts: bool = True) -> Content:
    """Return a summary as the content of a mail, its charts as images; raises OverLimit."""
    if has_charts and not is_installed("mail"):
        raise Refused(f"charts need the extra 'mail'; add it here as {HOW_TO_INSTALL} shows")
    pictures: dict[str, str] = {}
    images: list[Image] = []
    zone = ZoneInfo(summary.zone)
    trends = {
        part.name: [Point(at.astimezone(zone), value) for at, value in part.trend.points]
        for part in in_order(summary)[:MOST_CARDS]
        if has_charts and part.trend is not None
    }
    for domain, png in zip(trends, drawn(list(trends.values()), home), strict=True):
        if png is not None:
            name = f"chart-{len(images) + 1}.{sha256(png).hexdigest()[:12]}@minutebook"
            pictures[domain] = name
            images.append(Image(name, png))
    return Content(
        subject=f"{summary.title}: summary of {summary.local_time}",
        text=render_text(summary),
        html=render_html(summary, pictures),
        images=tuple(images),
    )
