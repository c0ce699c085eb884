"""The executive summary as a mail: what production holds now."""

from datetime import timedelta
from uuid import UUID

import sqlalchemy as sa

from data.store import snapshots
from data.store.failures import failures_since
from data.summary import Summary, summarise
from data.summary.history import Past
from data.summary.page import render_html, render_text
from minutebook.steps import SmallApp
from models.sql import read_clock
from models.store import tenants
from runtime.database import reading
from tasks.outgoing.mail.message import Content

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


def content_of(summary: Summary) -> Content:
    """Return a summary as the content of a mail."""
    return Content(
        subject=f"{summary.title}: summary of {summary.local_time}",
        text=render_text(summary),
        html=render_html(summary),
    )
