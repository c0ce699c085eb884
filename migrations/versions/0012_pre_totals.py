"""Totals that outlive the rows they count, for `/metrics`."""

import sqlalchemy as sa
from alembic import op

revision = "0012_pre_totals"
down_revision = "0011_pre_notify"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table, which the last release does not know."""
    op.create_table(
        "totals",
        sa.Column("small_app_id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("label", sa.Text(), primary_key=True),
        sa.Column("part", sa.Text(), primary_key=True),
        sa.Column("amount", sa.Float(), nullable=False),
    )
