"""An agent's claims, postponed while the database is unavailable."""

import logging
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from celery_steps import followed
from celery_steps.followed import Held
from models.store.operations.admission import TAKEN, KeptBack
from models.store.operations.claims import Claim
from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY, reason_of
from runtime.db_retry import start
from runtime.sections import AlertSettings

logger = logging.getLogger("minutehand.agent")

# How long the database is not asked after a failed claim.
LEFT_ALONE_S = 1.0


@dataclass(frozen=True, slots=True)
class Away:
    """Why no claim is possible, and until when the database is not asked again."""

    reason: str
    until: float


class Claims:
    """Claims for one worker; an unavailable database delays one of them, not all."""

    def __init__(self, engine: sa.Engine, alerts: AlertSettings) -> None:
        self.engine, self.alerts = engine, alerts
        self._away: Away | None = None

    def claim(
        self, its: tuple[UUID, int], worker: str, *, repeatable: bool
    ) -> tuple[Held, Claim] | KeptBack | Away:
        """Claim an attempt (id, number), or return why it does not start or cannot start now."""
        away = self._away
        if away is not None and monotonic() < away.until:
            return away

        def claimed() -> tuple[Held, Claim] | KeptBack:
            with self.engine.begin() as connection:
                return followed.try_to_claim(
                    connection, its, worker, repeatable=repeatable, alerts=self.alerts
                )

        try:
            return start(its[0], claimed, TAKEN)
        except DATABASE_AWAY as error:
            reason = reason_of(error)
            logger.warning("database unavailable, a claim is put off: %s", reason)
            self._away = Away(f"database unavailable: {reason}", monotonic() + LEFT_ALONE_S)
            return self._away
