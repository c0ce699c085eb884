"""The tables of the data product in 0.9.0, the first release, and the index that they read.

Frozen: a later change of `data/store/tables.py` is a migration of its own.
"""

import sqlalchemy as sa
from alembic import op

from migrations.first_release import (
    BIG,
    DOCUMENT,
    NAMING,
    OBJECT,
    UUID,
    app,
    at,
    flag,
    guard,
    one_of,
    text,
)

revision = "0001_pre_first_release"
down_revision = None
branch_labels = None
depends_on = None

metadata = sa.MetaData(naming_convention=NAMING)
# The kernel's, as far as these tables refer to them.
KERNEL = [
    sa.Table("small_apps", metadata, sa.Column("id", sa.Integer, primary_key=True)),
    sa.Table("operations", metadata, sa.Column("id", UUID, primary_key=True)),
]
REFRESHING = sa.text("""document LIKE '%"refresh"%' AND deleted_at IS NULL""")
SENDING = sa.text(
    """(document LIKE '%"send_email"%' AND deleted_at IS NULL"""
    """ OR document LIKE '%"send_execsum"%' AND deleted_at IS NULL)"""
)


def upgrade() -> None:
    """Create the tables, and the indexes of actions that refresh or send mail."""
    own = [table for table in metadata.sorted_tables if table not in KERNEL]
    metadata.create_all(op.get_bind(), tables=own)
    op.create_index(
        "actions_refreshing",
        "actions",
        ["small_app_id"],
        sqlite_where=REFRESHING,
        postgresql_where=REFRESHING,
    )
    op.create_index(
        "actions_sending", "actions", ["active"], sqlite_where=SENDING, postgresql_where=SENDING
    )


sa.Table(
    "domains",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("source", DOCUMENT, nullable=False),
    sa.Column("staging_id", UUID, sa.ForeignKey("snapshots.id")),
    sa.Column("production_id", UUID, sa.ForeignKey("snapshots.id")),
    at("staging_begun_at"),
    at("refreshed_at"),
    at("published_at"),
    sa.Column("published_by", UUID),
)

sa.Table(
    "snapshots",
    metadata,
    sa.Column("id", UUID, primary_key=True),
    app(),
    text("domain"),
    text("path"),
    sa.Column("row_count", BIG, nullable=False),
    sa.Column("byte_count", BIG, nullable=False),
    text("digest"),
    sa.Column("validators", OBJECT, nullable=False),
    sa.Column("figures", OBJECT, nullable=False),
    sa.Column("operation_id", UUID),
    at("created_at", optional=False),
    sa.Index("snapshots_of_domain", "small_app_id", "domain", "created_at"),
)

sa.Table(
    "app_documents",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("staging", DOCUMENT),
    sa.Column("production", DOCUMENT),
    at("published_at"),
    sa.Column("published_by", UUID),
    one_of("kind", ("design", "permissions")),
)

sa.Table(
    "templates",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    text("subject"),
    text("text"),
    text("html", optional=True),
)

sa.Table(
    "deliveries",
    metadata,
    sa.Column(
        "operation_id",
        sa.ForeignKey("operations.id", ondelete="CASCADE"),
        primary_key=True,
        type_=UUID,
    ),
    sa.Column("step", sa.Text, primary_key=True),
    sa.Column("recipient", sa.Text, primary_key=True),
    text("address"),
    text("message_id"),
    text("state"),
    text("error", optional=True),
    flag("is_permanent"),
    at("updated_at", optional=False),
    one_of("state", ("sending", "sent", "failed")),
    sa.Index("deliveries_recent", "updated_at"),
)

guard(metadata)
