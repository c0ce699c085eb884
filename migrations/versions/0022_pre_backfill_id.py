"""The backfill of an operation, which its triggerer named by the first digits alone."""

import sqlalchemy as sa
from alembic import op

from models.column_types import HyphenatedUuid

revision = "0022_pre_backfill_id"
down_revision = "0021_pre_staging_begun"
branch_labels = None
depends_on = None

FILLED = """
UPDATE operations SET backfill_id = (
    SELECT backfills.id FROM backfills
    WHERE backfills.action_uid = operations.action_uid
    AND operations.triggerer
        = 'Backfill ' || substr(CAST(backfills.id AS TEXT), 1, 8) || ' by ' || backfills.actor
    ORDER BY backfills.requested_at DESC LIMIT 1
) WHERE cause = 'backfill'
"""


def upgrade() -> None:
    """Add the column, and fill it; what the last release records meanwhile has none."""
    op.add_column("operations", sa.Column("backfill_id", HyphenatedUuid(), nullable=True))
    op.execute(FILLED)
