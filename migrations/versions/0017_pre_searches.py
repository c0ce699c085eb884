"""Indexes of the actions whose documents name a program, a calendar or the executive summary."""

import sqlalchemy as sa
from alembic import op

revision = "0017_pre_searches"
down_revision = "0016_pre_priority"
branch_labels = None
depends_on = None

NAMES = "document LIKE '%\"{}\"%' AND deleted_at IS NULL"


def upgrade() -> None:
    """Add the indexes; the last release does not know them."""
    _partial("actions_with_command", "command")
    _partial("actions_with_calendar", "calendar")
    _partial("actions_with_execsum", "send_execsum")


def _partial(name: str, word: str) -> None:
    only = sa.text(NAMES.format(word))
    op.create_index(name, "actions", ["small_app_id"], sqlite_where=only, postgresql_where=only)
