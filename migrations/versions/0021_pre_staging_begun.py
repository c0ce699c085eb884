"""Note when the reading of what is staged began, so that nothing older replaces it."""

import sqlalchemy as sa
from alembic import op

from models.column_types import UTCDateTime

revision = "0021_pre_staging_begun"
down_revision = "0020_pre_no_row_locks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; without a value, as the last release leaves it, anything replaces it."""
    op.add_column("domains", sa.Column("staging_begun_at", UTCDateTime(), nullable=True))
