"""Ends of operations, which make other actions due."""

import sqlalchemy as sa
from alembic import op

from models.column_types import HyphenatedUuid, StorableText, UTCDateTime

revision = "0013_pre_ends"
down_revision = "0012_pre_totals"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table, which the last release does not know."""
    op.create_table(
        "action_ends",
        sa.Column("action_uid", HyphenatedUuid, sa.ForeignKey("actions.uid"), primary_key=True),
        sa.Column("operation_id", HyphenatedUuid, primary_key=True),
        sa.Column("state", sa.Text(), primary_key=True),
        sa.Column("small_app_id", sa.Integer(), sa.ForeignKey("small_apps.id"), nullable=False),
        sa.Column("subject", StorableText, nullable=True),
        sa.Column("ended_at", UTCDateTime(), nullable=False),
    )
    op.create_index("action_ends_due", "action_ends", ["action_uid", "ended_at"])
    op.create_index("action_ends_old", "action_ends", ["small_app_id", "ended_at"])
