"""send_execsum: the executive summary (a report mail) of production, one to each recipient."""

from itertools import repeat

from data.mail.delivery import deliver
from data.summary.history import Past
from data.summary.mail import STEP, content_of, summary_of
from minutebook.steps import StepResult
from tasks.step_context import WorkContext


def run(context: WorkContext) -> StepResult:
    """Send the summary; keep its values in the checkpoint for the next comparison."""
    id = str(context.operation_id)
    past = Past.of_checkpoint(context.checkpoint.get(STEP) or {}, id)
    summary, kept = summary_of(context.engine, context.small_app, past, context.operation_id)
    content = content_of(summary)
    result = deliver(context, STEP, lambda recipients: repeat(content, len(recipients)))
    context.checkpoint[STEP] = past.checkpoint(id, summary.now, kept)
    return result
