"""send_execsum: the executive summary of what is published, one message to each recipient."""

from typing import Any

from mail.message import Content
from minutehand.steps import Recipient, StepResult
from models.sql import read_clock
from models.store import small_apps, snapshots
from runtime.database import reading
from small_apps.summary import Summary, summarise
from small_apps.summary_page import render_html, render_text
from tasks.context import WorkContext
from tasks.delivery import deliver

STEP = "send_execsum"


def run(context: WorkContext) -> StepResult:
    """Send the summary; what it is compared with next time goes into the checkpoint."""
    before = _compared_with(context)
    with reading(context.engine) as connection:
        document = small_apps.document_of(connection, context.small_app.id)
        domains = snapshots.domains_of(connection, context.small_app.id)
        now = read_clock(connection)
    parts, after = summarise(domains, before)
    title = document.get("title") or context.small_app.name
    content = _content(Summary(title, now, context.small_app.zone, parts))

    def compose(_recipient: Recipient) -> Content:
        return content

    result = deliver(context, STEP, compose)
    context.checkpoint[STEP] = {
        "operation_id": str(context.operation_id),
        "before": before,
        "after": after,
    }
    return result


def _compared_with(context: WorkContext) -> dict[str, Any]:
    """Return the figures of the last summary; another try of ours compares with the same ones."""
    last = context.checkpoint.get(STEP) or {}
    is_ours = last.get("operation_id") == str(context.operation_id)
    figures: dict[str, Any] = last.get("before" if is_ours else "after") or {}
    return figures


def _content(summary: Summary) -> Content:
    return Content(
        subject=f"{summary.title}: summary of {summary.local_time}",
        text=render_text(summary),
        html=render_html(summary),
    )
