"""The priority of actions, and the order that it gives to operations that wait."""

import sqlalchemy as sa
from alembic import op

from models.column_types import Count, UTCDateTime

revision = "0016_pre_priority"
down_revision = "0015_pre_apps"
branch_labels = None
depends_on = None

LONG_AGO = "1970-01-01 00:00:00.000000"
UNSTARTED = "state IN ('pending', 'queued')"
TO_TAKE = f"{UNSTARTED} AND waiting_for IS NULL AND task = 'job'"
PRIORITY = "priority <> 0 AND deleted_at IS NULL"
WAITS_TURN = f"turn = 'waits' AND {UNSTARTED}"


def upgrade() -> None:
    """Add the columns, and rank what waits by them.

    The last release reads and writes none of them: what it records goes first, as if it had waited
    for years. It sorts what waits itself, without the index that it knows.
    """
    for table in ("actions", "operations"):
        op.add_column(table, sa.Column("priority", Count, nullable=False, server_default="0"))
    op.add_column(
        "operations",
        sa.Column("ranked_at", UTCDateTime(), nullable=False, server_default=LONG_AGO),
    )
    op.execute("UPDATE operations SET ranked_at = recorded_at WHERE state IN ('pending', 'queued')")
    _partial("actions_with_priority", "actions", "active", where=PRIORITY)
    op.drop_index("operations_jobs", "operations")
    order = ["small_app_id", "queue", "ranked_at", "recorded_at"]
    _partial("operations_jobs", "operations", *order, where=TO_TAKE)
    op.drop_index("operations_waiting_turn", "operations")
    order += ["occurrence_at", "id"]
    _partial("operations_waiting_turn", "operations", *order, where=WAITS_TURN)


def _partial(name: str, table: str, *columns: str, where: str) -> None:
    only = sa.text(where)
    op.create_index(name, table, columns, sqlite_where=only, postgresql_where=only)
