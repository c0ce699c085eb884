"""Tokens of the HTTP API: a hash of each, its role and its small app.

The table of the first schema was never used: its roles and columns are not those of this release.
"""

import sqlalchemy as sa
from alembic import op

from models.column_types import UTCDateTime

revision = "0006_pre_tokens"
down_revision = "0005_pre_grants"
branch_labels = None
depends_on = None

ROLES = "'viewer', 'operator', 'editor', 'worker', 'admin'"


def upgrade() -> None:
    """Replace the table, which no release wrote."""
    op.drop_table("tokens")
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column(
            "small_app_id",
            sa.Integer,
            sa.ForeignKey("small_apps.id", name=op.f("tokens_small_app_id_fkey")),
        ),
        sa.Column("role", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("tokens_pkey")),
        sa.CheckConstraint(f"role IN ({ROLES})", name=op.f("tokens_role_check")),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("expires_at", UTCDateTime()),
        sa.Column("last_used_at", UTCDateTime()),
        sa.Column("revoked_at", UTCDateTime()),
    )
