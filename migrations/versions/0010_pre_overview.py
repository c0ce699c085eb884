"""The pages: indexes for what failed or was missed, and for all actions by name."""

import sqlalchemy as sa
from alembic import op

revision = "0010_pre_overview"
down_revision = "0009_pre_sessions"
branch_labels = None
depends_on = None

TROUBLED = "state IN ('failed', 'missed', 'partial') AND finished_at IS NOT NULL"


def upgrade() -> None:
    """Add the indexes; what the last release writes stays complete."""
    only = sa.text(TROUBLED)
    columns = ["finished_at"]
    op.create_index(
        "operations_troubled", "operations", columns, sqlite_where=only, postgresql_where=only
    )
    op.create_index("actions_by_name", "actions", ["name", "uid"])
