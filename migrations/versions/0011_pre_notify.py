"""Whether a manual run mails about new data, if the user said so."""

import sqlalchemy as sa
from alembic import op

revision = "0011_pre_notify"
down_revision = "0010_pre_overview"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column, which the last release ignores: it mails as the documents say."""
    op.add_column("operations", sa.Column("notify", sa.Boolean(), nullable=True))
