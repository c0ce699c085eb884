"""The id of the job that an action is the work of, so that a job is found by it."""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0019_pre_jobs"
down_revision = "0018_pre_look_ups"
branch_labels = None
depends_on = None

BATCH = 1_000


def upgrade() -> None:
    """Add the column with its index; the last release knows no jobs."""
    op.add_column("actions", sa.Column("job_id", sa.Text))
    _note_jobs()
    only = sa.text("job_id IS NOT NULL AND deleted_at IS NULL")
    order = ["small_app_id", "job_id", "name"]
    op.create_index("actions_jobs", "actions", order, sqlite_where=only, postgresql_where=only)


def _note_jobs() -> None:
    """Store the job of each stored plan."""
    connection = op.get_bind()
    actions = sa.table("actions", *map(sa.column, ("uid", "document", "plan", "job_id")))
    named = sa.select(actions.c.uid, actions.c.plan).where(actions.c.document.like('%"job"%'))
    every = named.order_by(actions.c.uid).limit(BATCH)
    rows = connection.execute(every).all()
    while rows:
        changes = [{"its_uid": row.uid, "its_job": id} for row in rows if (id := _job_id(row.plan))]
        change = sa.update(actions).where(actions.c.uid == sa.bindparam("its_uid"))
        if changes:
            connection.execute(change.values(job_id=sa.bindparam("its_job")), changes)
        rows = connection.execute(every.where(actions.c.uid > rows[-1].uid)).all()


def _job_id(plan: str) -> str | None:
    try:
        url = json.loads(plan)["job"]["url"]
        return hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()[:12]
    except (ValueError, KeyError, TypeError, AttributeError):
        # Another action, or broken by hand; the repair writes the id too.
        return None
