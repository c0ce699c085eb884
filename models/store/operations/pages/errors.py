"""Operations by a part of their error."""

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from models.operation import TROUBLED
from models.store.operations import in_states
from models.store.scope import Scope
from models.tables import operations

# No index finds a part of a text, so at most so many are read.
MOST_READ = 10_000


def with_error(
    connection: sa.Connection, scope: Scope, text: str, since: datetime, limit: int
) -> list[UUID]:
    """Return the newest ends since then that were no success and have this text as their reason.

    Those that failed, were missed or ended partial, up to MOST_READ of them.
    """
    ended = operations.c.finished_at
    newest = (
        sa.select(operations.c.id, ended, operations.c.error, operations.c.reason)
        .where(in_states(TROUBLED), ended >= since, scope.has(operations.c.small_app_id))
        .order_by(ended.desc())
        .limit(MOST_READ)
        .subquery("newest")
    )
    why = (newest.c.error, newest.c.reason)
    found = (
        sa.select(newest.c.id)
        .where(sa.or_(*(one.icontains(text, autoescape=True) for one in why)))
        .order_by(newest.c.finished_at.desc(), newest.c.id)
    )
    return list(connection.execute(found.limit(limit)).scalars())
