"""The pages of small apps: indexes to count actions, and for those that refresh data."""

import sqlalchemy as sa
from alembic import op

revision = "0015_pre_apps"
down_revision = "0014_pre_unrun"
branch_labels = None
depends_on = None

THERE = "deleted_at IS NULL"
REFRESHING = """document LIKE '%"refresh"%' AND deleted_at IS NULL"""


def upgrade() -> None:
    """Add the indexes; what the last release writes stays complete."""
    _partial("actions_counted", ["small_app_id", "active"], THERE)
    _partial("actions_refreshing", ["small_app_id"], REFRESHING)


def _partial(name: str, columns: list[str], where: str) -> None:
    only = sa.text(where)
    op.create_index(name, "actions", columns, sqlite_where=only, postgresql_where=only)
