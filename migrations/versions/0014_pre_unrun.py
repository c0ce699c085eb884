"""What was due and never ran: an index for actions that need attention."""

import sqlalchemy as sa
from alembic import op

revision = "0014_pre_unrun"
down_revision = "0013_pre_ends"
branch_labels = None
depends_on = None

UNRUN = "state IN ('dropped', 'missed', 'skipped')"


def upgrade() -> None:
    """Add the index; what the last release writes stays complete."""
    only = sa.text(UNRUN)
    columns = ["action_uid"]
    op.create_index(
        "operations_unrun", "operations", columns, sqlite_where=only, postgresql_where=only
    )
