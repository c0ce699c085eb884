"""Turns of small apps that share a queue, and what each app has used of its limits."""

import sqlalchemy as sa
from alembic import op

from models.column_types import UTCDateTime

revision = "0007_pre_turns"
down_revision = "0006_pre_tokens"
branch_labels = None
depends_on = None

UNSTARTED = "'pending', 'queued'"


def upgrade() -> None:
    """Add columns and indexes; the last release ignores them, and sends whatever is due."""
    op.add_column("operations", sa.Column("turn", sa.Text(), nullable=True))
    op.create_table(
        "app_usage",
        sa.Column("small_app_id", sa.Integer(), sa.ForeignKey("small_apps.id"), primary_key=True),
        sa.Column("what", sa.Text(), primary_key=True),
        sa.Column("starts_at", UTCDateTime(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
    )
    op.add_column("workers", sa.Column("slots", sa.Integer(), nullable=True))
    _partial(
        "operations_waiting_turn",
        ["small_app_id", "queue", "recorded_at", "occurrence_at", "id"],
        f"turn = 'waits' AND state IN ({UNSTARTED})",
    )
    _partial(
        "operations_with_turn",
        ["small_app_id", "queue"],
        f"turn = 'taken' AND state IN ({UNSTARTED}, 'running')",
    )


def _partial(name: str, columns: list[str], where: str) -> None:
    only = sa.text(where)
    op.create_index(name, "operations", columns, sqlite_where=only, postgresql_where=only)
