"""The last runs of actions, as a row of bars shows them."""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.store import overview
from runtime.database import reading
from services.installation import Installation
from services.view import Instant, View

# On a row of bars.
SHOWN = 30
# Characters of a reason.
SHORT = 80


class LastRun(View):
    """One of an action's last operations."""

    id: UUID = Field(description="Id of the operation.")
    at: Instant = Field(description="The instant at which it was due.")
    state: str = Field(description="Its state: `success`, `failed`, `missed` and so on.")
    took_s: float | None = Field(description="Seconds of its last attempt; null until it ends.")
    why: str | None = Field(description="Why it is in its state, shortened.")


def last_runs_of(
    connection: sa.Connection, uids: Collection[UUID], limit: int = SHOWN
) -> Mapping[UUID, tuple[LastRun, ...]]:
    """Return up to `limit` last operations of each action that has some, the newest last."""
    found: dict[UUID, list[LastRun]] = {}
    for row in overview.last_runs(connection, uids, limit) if uids else ():
        one = LastRun(
            id=row["id"],
            at=row["occurrence_at"],
            state=row["state"],
            took_s=_seconds(row["started_at"], row["finished_at"]),
            why=None if row["why"] is None else row["why"][:SHORT],
        )
        found.setdefault(row["action_uid"], []).append(one)
    return {uid: tuple(runs) for uid, runs in found.items()}


def runs_beside(installation: Installation, uid: UUID) -> tuple[LastRun, ...]:
    """Return the last operations of the action that one of them belongs to."""
    with reading(installation.engine) as connection:
        return last_runs_of(connection, [uid]).get(uid, ())


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    if since is None or until is None:
        return None
    return max(0.0, (until - since).total_seconds())
