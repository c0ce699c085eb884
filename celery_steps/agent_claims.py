"""An agent's claims, postponed while the database is unavailable."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
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
    # The call whose claim the database may have committed, though it did not answer.
    in_doubt: str | None = None


class Claims:
    """Claims for one worker; an unavailable database delays one of them, not all."""

    def __init__(self, engine: sa.Engine, alerts: AlertSettings) -> None:
        self.engine, self.alerts = engine, alerts
        self._away: Away | None = None

    def claim(
        self, its: tuple[UUID, int], asked: Mapping[str, Any]
    ) -> tuple[Held, Claim] | KeptBack | Away:
        """Claim an attempt (id, number), or return why it does not start or cannot start now.

        One that is asked for again is resumed if an agent that was killed claimed it.
        """
        delivery = str(asked["delivery"]) if asked.get("delivery") else None
        # An agent that was killed may have claimed it for the same call.
        may_be_committed = bool(asked.get("again"))
        away = self._away
        if away is not None and monotonic() < away.until:
            return replace(away, in_doubt=delivery if may_be_committed else None)

        def claimed() -> tuple[Held, Claim] | KeptBack:
            nonlocal may_be_committed
            with self.engine.begin() as connection:
                found = self._claimed(connection, its, asked, delivery)
                may_be_committed = True
                return found

        try:
            return start(its[0], claimed, TAKEN)
        except DATABASE_AWAY as error:
            reason = reason_of(error)
            logger.warning("database unavailable, a claim is put off: %s", reason)
            away = Away(f"database unavailable: {reason}", monotonic() + LEFT_ALONE_S)
            self._away = away
            return replace(away, in_doubt=delivery if may_be_committed else None)

    def _claimed(
        self,
        connection: sa.Connection,
        its: tuple[UUID, int],
        asked: Mapping[str, Any],
        delivery: str | None,
    ) -> tuple[Held, Claim] | KeptBack:
        if delivery is not None and asked.get("again"):
            own = followed.claimed_before(connection, its, delivery)
            if own is not None:
                return own
        return followed.try_to_claim(
            connection,
            its,
            asked["worker"],
            delivery,
            repeatable=bool(asked["repeatable"]),
            alerts=self.alerts,
        )
