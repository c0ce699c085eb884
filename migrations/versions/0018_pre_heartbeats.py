"""Keep the index of heartbeats from what names none: it looks for one row of those that run."""

import sqlalchemy as sa
from alembic import op

revision = "0018_pre_heartbeats"
down_revision = "0017_pre_searches"
branch_labels = None
depends_on = None

NAME = "operations_heartbeat_stale"


def upgrade() -> None:
    """Make the index anew; what the last release reads by it, it reads by this one too."""
    only = sa.text("state = 'running' AND heartbeat_at IS NOT NULL")
    op.drop_index(NAME, "operations")
    op.create_index(NAME, "operations", ["heartbeat_at"], sqlite_where=only, postgresql_where=only)
