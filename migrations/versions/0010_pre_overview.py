"""The overview: the index by which it finds what failed or was missed."""

import sqlalchemy as sa
from alembic import op

revision = "0010_pre_overview"
down_revision = "0009_pre_sessions"
branch_labels = None
depends_on = None

TROUBLED = "state IN ('failed', 'missed', 'partial')"


def upgrade() -> None:
    """Add the index; what the last release writes stays complete."""
    only = sa.text(TROUBLED)
    columns = ["finished_at"]
    op.create_index(
        "operations_troubled", "operations", columns, sqlite_where=only, postgresql_where=only
    )
