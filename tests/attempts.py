"""Claims, beats and ends as workers make them; the secret of a claim is read from the row."""

from uuid import UUID

import sqlalchemy as sa

from models.operation import AttemptKey
from models.store.operations import heartbeat, take
from models.store.operations.end import EndResult, Outcome
from models.store.operations.end import end as end_attempt
from models.store.operations.heartbeat import NO_NEWS, ProgressUpdate
from models.store.operations.start_checks import NotStarted
from models.store.operations.take import Claim, ClaimRequest
from models.tables import operations
from models.worker_kinds import WorkerKind
from runtime.sections import AlertSettings


def key_of(connection: sa.Connection, id: UUID, attempt: int) -> AttemptKey:
    """Return the key of an attempt of that number, with the secret that the row has now."""
    its = sa.select(operations.c.secret).where(operations.c.id == id)
    return AttemptKey(id, attempt, connection.execute(its).scalar_one_or_none() or "")


def claim(
    connection: sa.Connection,
    id: UUID,
    attempt: int,
    worker: str,
    worker_kind: WorkerKind | None = None,
    *,
    alerts: AlertSettings,
) -> Claim | NotStarted:
    """Claim an attempt with a secret of its own."""
    return take.claim(connection, ClaimRequest(id, attempt, worker), alerts, worker_kind)


def beat(
    connection: sa.Connection, id: UUID, attempt: int, story: ProgressUpdate = NO_NEWS
) -> bool:
    return heartbeat.beat(connection, key_of(connection, id, attempt), story)


def end(
    connection: sa.Connection,
    id: UUID,
    attempt: int,
    ending: Outcome,
    story: ProgressUpdate | None = None,
    *,
    alerts: AlertSettings,
) -> EndResult:
    return end_attempt(connection, key_of(connection, id, attempt), ending, story, alerts=alerts)
