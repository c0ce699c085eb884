"""What a worker that follows writes, in a transaction of the test."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import AttemptKey
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.end import EndResult
from models.store.operations.start_checks import NotStarted
from models.store.operations.take import Claim, ClaimRequest, recorded_of
from services.followers import attempts


def take(
    connection: sa.Connection, id: UUID, attempt: int = 1, secret: str = "one"
) -> Claim | NotStarted:
    """Take an operation as a follower does."""
    recorded = recorded_of(connection, id, attempt)
    assert recorded is not None
    wanted = ClaimRequest(id, attempt, "shop@host", secret)
    return attempts.take(connection, recorded, wanted, repeatable=False, alerts=NO_ALERTS)


def finish(connection: sa.Connection, key: AttemptKey, report: Mapping[str, Any]) -> EndResult:
    """End an operation as a follower reports."""
    recorded = recorded_of(connection, key.id, key.attempt)
    assert recorded is not None
    return attempts.finish(connection, recorded, key, report, NO_ALERTS)
