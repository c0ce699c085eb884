"""Keep the index of heartbeats from what names none, and find missed spans by their recording."""

import sqlalchemy as sa
from alembic import op

revision = "0018_pre_look_ups"
down_revision = "0017_pre_searches"
branch_labels = None
depends_on = None

STALE = "operations_heartbeat_stale"


def upgrade() -> None:
    """Make the indexes; what the last release reads by the first, it reads by the new one too."""
    only = sa.text("state = 'running' AND heartbeat_at IS NOT NULL")
    op.drop_index(STALE, "operations")
    op.create_index(STALE, "operations", ["heartbeat_at"], sqlite_where=only, postgresql_where=only)
    op.create_index("missed_spans_recorded", "missed_spans", ["recorded_at"])
