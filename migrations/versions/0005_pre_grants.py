"""What each small app may reach; null is all that the settings allow, as before."""

import sqlalchemy as sa
from alembic import op

revision = "0005_pre_grants"
down_revision = "0004_pre_sound"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the last release ignores it."""
    op.add_column("small_apps", sa.Column("grants", sa.JSON(), nullable=True))
