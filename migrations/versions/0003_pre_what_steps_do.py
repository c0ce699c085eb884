"""Documents of small apps, tasks of Celery applications, permanent refusals: columns of 0.3.0."""

import sqlalchemy as sa
from alembic import op

from models.column_types import HyphenatedUuid, UTCDateTime

revision = "0003_pre_what_steps_do"
down_revision = "0002_pre_time_in_full"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what 0.3.0 needs; rows written by 0.2.0 stay complete."""
    op.add_column("operations", sa.Column("in_doubt", sa.Text(), nullable=True))
    op.add_column("operations", sa.Column("handing_at", UTCDateTime(), nullable=True))
    op.add_column(
        "deliveries",
        sa.Column("is_permanent", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    # Since when a small app has had an action `maintenance`; null until the default one is made.
    op.add_column("small_apps", sa.Column("maintained_at", UTCDateTime(), nullable=True))
    # The followed tasks of the user's Celery application, as a JSON list.
    op.add_column("workers", sa.Column("follows", sa.JSON(), nullable=True))
    op.add_column("workers", sa.Column("step_failures", sa.JSON(), nullable=True))
    # The last operation that moved production.
    op.add_column("domains", sa.Column("published_by", HyphenatedUuid(), nullable=True))
    op.create_table(
        "app_documents",
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("staging", sa.Text(), nullable=True),
        sa.Column("production", sa.Text(), nullable=True),
        sa.Column("staged_at", UTCDateTime(), nullable=False),
        sa.Column("published_at", UTCDateTime(), nullable=True),
        sa.Column("published_by", HyphenatedUuid(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('design', 'permissions')", name=op.f("app_documents_kind_check")
        ),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("app_documents_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("small_app_id", "kind", "name", name=op.f("app_documents_pkey")),
    )
