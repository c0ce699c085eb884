"""Record operations without locks on their actions: PostgreSQL checks no foreign keys of theirs."""

from alembic import op

revision = "0020_pre_no_row_locks"
down_revision = "0019_pre_jobs"
branch_labels = None
depends_on = None

FOREIGN_KEYS = ("operations_action_uid_fkey", "operations_small_app_id_fkey")


def upgrade() -> None:
    """Drop the constraints; SQLite, which locks no rows, keeps them."""
    if op.get_bind().dialect.name == "postgresql":
        for name in FOREIGN_KEYS:
            op.drop_constraint(name, "operations", type_="foreignkey")
