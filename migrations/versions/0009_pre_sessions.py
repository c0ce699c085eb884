"""Sessions of the dashboard and links that open one: rows of `tokens` of their own kinds."""

import sqlalchemy as sa
from alembic import op

revision = "0009_pre_sessions"
down_revision = "0008_pre_jobs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns; the last release accepts no session and no link: it reads another prefix."""
    # SQLite adds a constraint only together with its column, which Alembic does not render.
    op.execute(
        "ALTER TABLE tokens ADD COLUMN kind TEXT DEFAULT 'token' NOT NULL"
        " CONSTRAINT tokens_kind_check CHECK (kind IN ('token', 'session', 'link'))"
    )
    op.execute(
        "ALTER TABLE tokens ADD COLUMN parent TEXT"
        " CONSTRAINT tokens_parent_fkey REFERENCES tokens (id)"
    )
    op.add_column("tokens", sa.Column("browser", sa.Text(), nullable=True))
