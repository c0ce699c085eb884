"""send_execsum: the executive summary (a report mail) of production, one to each recipient."""

from datetime import timedelta
from hashlib import sha256
from itertools import repeat
from zoneinfo import ZoneInfo

from minutehand.steps import StepResult
from models.sql import read_clock
from runtime.database import reading
from small_apps.mail.delivery import deliver
from small_apps.mail.message import Content, Image
from small_apps.step_context import WorkContext
from small_apps.store import small_apps, snapshots
from small_apps.store.failures import failures_since
from small_apps.summary import Summary, summarise
from small_apps.summary.charts import columns_png, load_matplotlib
from small_apps.summary.history import Past, Point
from small_apps.summary.page import MOST_CARDS, in_order, render_html, render_text

STEP = "send_execsum"
# The period of failures in the first summary.
FIRST_LOOK_BACK = timedelta(days=7)


def run(context: WorkContext) -> StepResult:
    """Send the summary; keep its values in the checkpoint for the next comparison."""
    id = str(context.operation_id)
    past = Past.of_checkpoint(context.checkpoint.get(STEP) or {}, id)
    summary, kept = _summary(context, past)
    content = _content(context, summary)
    result = deliver(context, STEP, lambda recipients: repeat(content, len(recipients)))
    context.checkpoint[STEP] = past.checkpoint(id, summary.now, kept)
    return result


def _summary(context: WorkContext, past: Past) -> tuple[Summary, dict[str, object]]:
    app = context.small_app
    with reading(context.engine) as connection:
        now = read_clock(connection)
        document = small_apps.document_of(connection, app.id)
        domains = snapshots.domains_of(connection, app.id)
        watched = past.last_at or now - FIRST_LOOK_BACK
        failures = failures_since(connection, app.id, watched, context.operation_id)
    parts, kept = summarise(domains, past, now)
    title = document.get("title") or app.name
    summary = Summary(title, now, app.zone, parts, past.last_at, watched, tuple(failures))
    return summary, kept


def _content(context: WorkContext, summary: Summary) -> Content:
    pictures: dict[str, str] = {}
    images: list[Image] = []
    zone = ZoneInfo(summary.zone)
    for part in in_order(summary)[:MOST_CARDS]:
        if part.trend is None:
            continue
        load_matplotlib(context.settings.home)
        png = columns_png([Point(at.astimezone(zone), value) for at, value in part.trend.points])
        if png is not None:
            name = f"chart-{len(images) + 1}.{sha256(png).hexdigest()[:12]}@minutehand"
            pictures[part.name] = name
            images.append(Image(name, png))
    return Content(
        subject=f"{summary.title}: summary of {summary.local_time}",
        text=render_text(summary),
        html=render_html(summary, pictures),
        images=tuple(images),
    )
