"""The tables of the data product, beside those of the kernel: see `models.tables`."""

import sqlalchemy as sa

from models.column_types import (
    HyphenatedUuid,
    Json,
    JsonText,
    LargeNumber,
    ShownText,
    StorableText,
    Switch,
    UTCDateTime,
)
from models.tables import actions, metadata, naming

domains = sa.Table(
    "domains",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("name", StorableText, primary_key=True),
    sa.Column("source", JsonText, nullable=False),
    sa.Column("staging_id", HyphenatedUuid, sa.ForeignKey("snapshots.id")),
    sa.Column("production_id", HyphenatedUuid, sa.ForeignKey("snapshots.id")),
    # When the reading of what is staged began: what began earlier does not replace it.
    sa.Column("staging_begun_at", UTCDateTime()),
    sa.Column("refreshed_at", UTCDateTime()),
    sa.Column("published_at", UTCDateTime()),
    # The last operation that moved production: it sends the mail, even after an interruption.
    sa.Column("published_by", HyphenatedUuid),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("id", HyphenatedUuid, primary_key=True),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), nullable=False),
    sa.Column("domain", StorableText, nullable=False),
    sa.Column("path", StorableText, nullable=False),
    sa.Column("row_count", LargeNumber, nullable=False),
    sa.Column("byte_count", LargeNumber, nullable=False),
    sa.Column("digest", StorableText, nullable=False),
    sa.Column("validators", Json(dict, required=True), nullable=False),
    sa.Column("figures", Json(dict, required=True), nullable=False),
    sa.Column("operation_id", HyphenatedUuid),
    sa.Column("created_at", UTCDateTime(), nullable=False),
    sa.Index("snapshots_of_domain", "small_app_id", "domain", "created_at"),
)

# Further documents of an app, staged and published like its data.
app_documents = sa.Table(
    "app_documents",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    # Null in staging: the next publish removes it. Null in production: never published.
    sa.Column("staging", JsonText),
    sa.Column("production", JsonText),
    sa.Column("published_at", UTCDateTime()),
    sa.Column("published_by", HyphenatedUuid),
    sa.CheckConstraint("kind IN ('design', 'permissions')", name="kind"),
)

templates = sa.Table(
    "templates",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("name", StorableText, primary_key=True),
    sa.Column("subject", StorableText, nullable=False),
    sa.Column("text", StorableText, nullable=False),
    sa.Column("html", StorableText),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    # They go with their operation, which the kernel prunes.
    sa.Column(
        "operation_id",
        sa.ForeignKey("operations.id", ondelete="CASCADE"),
        primary_key=True,
        type_=HyphenatedUuid,
    ),
    sa.Column("step", sa.Text, primary_key=True),
    sa.Column("recipient", sa.Text, primary_key=True),
    sa.Column("address", StorableText, nullable=False),
    sa.Column("message_id", StorableText, nullable=False),
    sa.Column("state", StorableText, nullable=False),
    sa.Column("error", ShownText),
    # Whether the server refused the address for good: no further attempt.
    sa.Column("is_permanent", Switch, nullable=False, server_default=sa.false()),
    sa.Column("updated_at", UTCDateTime(), nullable=False),
    sa.CheckConstraint("state IN ('sending', 'sent', 'failed')", name="state"),
    sa.Index("deliveries_recent", "updated_at"),
)

REFRESHING = naming("refresh")
SENDING = f"({naming('send_email')} OR {naming('send_execsum')})"
sa.Index("actions_sending", actions.c.active, info={"where": SENDING})
sa.Index("actions_refreshing", actions.c.small_app_id, info={"where": REFRESHING})
