"""Causes of operations, Celery tasks without a default limit, clocks that went back."""

import sqlalchemy as sa
from alembic import op

from migrations.unlimited import take_default_limits
from models.column_types import UTCDateTime

revision = "0004_pre_sound"
down_revision = "0003_pre_what_steps_do"
branch_labels = None
depends_on = None

CAUSES = "'schedule', 'event', 'manual', 'rerun', 'retry', 'backfill'"


def upgrade() -> None:
    """Add what 0.4.0 needs; what 0.3.0 writes stays complete."""
    # One statement, as SQLite adds a column with its constraint, and no constraint by itself.
    op.execute(
        "ALTER TABLE operations ADD COLUMN cause TEXT DEFAULT 'schedule' NOT NULL"
        f" CONSTRAINT operations_cause_check CHECK (cause IN ({CAUSES}))"
    )
    triggerer = sa.column("triggerer", sa.Text)
    begins = {
        "Manual run by ": "manual", "Rerun by ": "rerun", "Retry by ": "retry",
        "Backfill ": "backfill",
    }  # fmt: skip
    operations = sa.table("operations", triggerer, sa.column("cause"), sa.column("event_at"))
    cause = sa.case(
        *((triggerer.startswith(words), name) for words, name in begins.items()), else_="event"
    )
    others = sa.or_(
        operations.c.event_at.is_not(None), *(triggerer.startswith(words) for words in begins)
    )
    op.execute(sa.update(operations).where(others).values(cause=cause))
    take_default_limits(op.get_bind())
    # From when a revision holds, if the clock went back behind the instant of its making.
    op.add_column("revisions", sa.Column("holds_from", UTCDateTime(), nullable=True))
    # The `now` of the tick that missed a span.
    op.add_column("missed_spans", sa.Column("decided_at", UTCDateTime(), nullable=True))
