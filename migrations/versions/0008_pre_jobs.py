"""Jobs: the index by which workers of other languages find what to take."""

import sqlalchemy as sa
from alembic import op

revision = "0008_pre_jobs"
down_revision = "0007_pre_turns"
branch_labels = None
depends_on = None

TO_TAKE = "state IN ('pending', 'queued') AND waiting_for IS NULL AND task = 'job'"


def upgrade() -> None:
    """Add the index; what the last release writes stays complete."""
    only = sa.text(TO_TAKE)
    columns = ["small_app_id", "queue", "recorded_at"]
    op.create_index(
        "operations_jobs", "operations", columns, sqlite_where=only, postgresql_where=only
    )
