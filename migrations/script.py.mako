"""${message}."""

import sqlalchemy as sa
from alembic import op

from models.sql import HyphenatedUuid, UTCDateTime

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the change."""
    ${upgrades if upgrades else "pass"}
