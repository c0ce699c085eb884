"""The executive summary of a small app, as it would be mailed now; nothing is sent."""

from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from data.summary.history import Past
from data.summary.mail import STEP, content_of, summary_of
from models.stored import document_in
from models.tables import action_state, actions, naming
from runtime.database import reading
from services.installation import Installation
from services.verbs import READ, Verb
from services.view import View

# No operation writes a preview.
NONE = UUID(int=0)


class SummaryPreview(View):
    """The executive summary as it would be mailed now."""

    action: str | None = Field(
        description="The action that mails it, and whose last one it is compared with."
    )
    action_uid: UUID | None = Field(
        description="Uid of the action that mails it; null if none does."
    )
    subject: str = Field(description="Subject of the mail.")
    text: str = Field(description="Its text part.")
    html: str = Field(description="Its HTML part.")


@Verb("preview_summary", "GET /api/apps/{app}/summary", READ)
def preview(installation: Installation) -> SummaryPreview:
    """Render the executive summary of a small app as it would be mailed now; nothing is sent."""
    app = installation.small_app
    with reading(installation.engine) as connection:
        action = _action_with(connection, app.id, STEP)
    checkpoint = (action and action["checkpoint"]) or {}
    past = Past.of_checkpoint(checkpoint.get(STEP) or {}, str(NONE))
    summary, _ = summary_of(installation.engine, app, past, NONE)
    content = content_of(summary)
    return SummaryPreview(
        action=action and action["name"],
        action_uid=action and action["uid"],
        subject=content.subject,
        text=content.text,
        html=content.html or "",
    )


def _action_with(connection: sa.Connection, small_app_id: int, step: str) -> sa.RowMapping | None:
    """Return uid, name and checkpoint of the first action by name that has a step."""
    query = (
        sa.select(actions.c.uid, actions.c.name, actions.c.document, action_state.c.checkpoint)
        .outerjoin(action_state, action_state.c.action_uid == actions.c.uid)
        .where(actions.c.small_app_id == small_app_id, sa.text(naming(step)))
        .order_by(actions.c.active.desc(), actions.c.name)
    )
    for row in connection.execute(query).mappings():
        operations = document_in(row["document"]).get("operations")
        if isinstance(operations, dict) and step in operations:
            return row
    return None
