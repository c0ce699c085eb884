"""Notices to the admins about the installation itself: no daemon, worker or broker need run.

The process that records them delivers them; if it dies, any other one that watches does.
"""

from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import sqlalchemy as sa

from models.notices import NoticeKind
from models.sql import database_now, in_literals
from models.store import notices as store
from models.store.conditions import IS_OWED
from models.store.notices import Origin, Owed
from models.store.notices.alerting import alert_targets
from models.tables import notices
from runtime.sections import AlertSettings

_KINDS = {NoticeKind.BROKEN.value, NoticeKind.MENDED.value}


def enqueue(
    connection: sa.Connection,
    kind: NoticeKind,
    end: str,
    payload: dict[str, Any],
    alerts: AlertSettings,
) -> list[Owed]:
    """Enqueue a notice for each target of the installation, to be sent by the caller at once."""
    origin = Origin(None, None, uuid5(NAMESPACE_OID, "the installation"), end)
    return store.enqueue(connection, origin, kind, alert_targets(alerts), payload)


def sendable(connection: sa.Connection) -> Sequence[Owed]:
    """Return those that were not delivered, and wait no longer for their next try."""
    query = sa.select(notices.c.id, notices.c.tries).where(
        IS_OWED, in_literals(notices.c.kind, _KINDS), notices.c.not_before <= database_now()
    )
    return [Owed(*row) for row in connection.execute(query)]
