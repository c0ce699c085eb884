"""An agent's claims: within its bounds, and postponed while the database is unavailable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import UUID

import sqlalchemy as sa

from models.operation import AttemptKey
from models.store.operations.start_checks import TAKEN, NotStarted, OperationFacts
from models.store.operations.take import ClaimRequest, recorded_of
from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY, is_locked, reason_of
from runtime.db_retry import start
from runtime.logs.events import EventLog
from runtime.sections import AlertSettings
from tasks.agent import followed
from tasks.agent.bounds import Bounds
from tasks.agent.desk import Desk, Errand
from tasks.agent.followed import Held

logger = EventLog("minutebook.agent")

# How long the database is not asked after a failed claim.
LEFT_ALONE_S = 1.0
# How long a claim may take; then its message goes back to its queue.
CLAIM_S = 5.0
# A restarted sidecar hears of its workers within two seconds; until then tasks ask again.
UNHEARD = NotStarted("no worker of this agent has said that it follows the task")


@dataclass(frozen=True, slots=True)
class Call:
    """A task's call that asks for an attempt; the secret of its request is its random name."""

    wanted: ClaimRequest
    # Whether the task may begin twice.
    repeatable: bool
    # Whether it asked before, perhaps an agent that was killed; it is the same call.
    again: bool = field(compare=False)


def key_of(asked: Mapping[str, Any]) -> AttemptKey:
    """Return the attempt that a client names; raises KeyError or ValueError."""
    return AttemptKey(UUID(asked["id"]), int(asked["attempt"]), str(asked.get("delivery", "")))


def call_of(asked: Mapping[str, Any]) -> Call:
    """Return the call that a client describes; raises KeyError or ValueError."""
    its = (UUID(asked["id"]), int(asked["attempt"]))
    wanted = ClaimRequest(*its, asked["worker"], str(asked["delivery"]))
    return Call(wanted, bool(asked["repeatable"]), bool(asked.get("again")))


@dataclass(frozen=True, slots=True)
class Away:
    """Why no claim is possible, and until when the database is not asked again."""

    reason: str
    until: float = 0.0
    # Whether the database may have committed the claim, though it did not answer.
    is_in_doubt: bool = False
    # The claim that the database has not answered yet.
    open: Errand[Held | NotStarted] | None = None


class Claims:
    """The claims of an agent; an unavailable database delays one of them, not all.

    `is_followed` says whether one of the agent's workers follows a task.
    """

    def __init__(
        self,
        desk: Desk,
        alerts: AlertSettings,
        bounds: Bounds,
        is_followed: Callable[[str], bool],
    ) -> None:
        self.desk, self.alerts = desk, alerts
        self.bounds, self.is_followed = bounds, is_followed
        self._away: Away | None = None

    def kept_out(
        self, recorded: OperationFacts | None, attempt: int, *, is_unknown: bool = False
    ) -> NotStarted | None:
        """Return why the agent may not act on an operation, None if it may or has no such row.

        `is_unknown`: no worker follows its task, and that is why its message was discarded.
        """
        if recorded is None:
            return None
        why = self.bounds.why_not(recorded)
        if why is not None:
            logger.warning(
                "agent_refused",
                "operation {operation} attempt {attempt} is not this agent's: {reason}",
                recorded.id,
                attempt,
                why,
            )
            return NotStarted(why)
        return None if is_unknown or self.is_followed(recorded.task) else UNHEARD

    def claim(self, call: Call) -> Held | NotStarted | Away:
        """Claim an attempt, or return why it does not start or cannot start now.

        One that is asked for again is resumed if an agent that was killed claimed it.
        """
        away = self._away
        if away is not None and monotonic() < away.until:
            return replace(away, is_in_doubt=call.again)
        if self.desk.is_away():
            return Away("the database does not answer", is_in_doubt=call.again)
        return start(call.wanted.id, lambda: self._asked(call), TAKEN)

    def _asked(self, call: Call) -> Held | NotStarted | Away:
        errand = Errand(lambda connection: self._claimed(connection, call))
        self.desk.submit(errand)
        if not errand.is_settled(CLAIM_S):
            is_dropped = errand.drop()
            return Away(
                f"no answer of the database within {CLAIM_S:g} s",
                is_in_doubt=call.again,
                open=None if is_dropped else errand,
            )
        if isinstance(errand.error, DATABASE_AWAY):
            # An agent that was killed may have claimed it for the same call.
            return self._put_off(errand.error, is_in_doubt=call.again or errand.is_in_doubt)
        if errand.error is not None:
            raise errand.error
        return cast(Held | NotStarted, errand.result)

    def _put_off(self, error: Exception, *, is_in_doubt: bool) -> Away:
        reason = reason_of(error)
        logger.warning(
            "database_unavailable", "database unavailable, a claim is put off: {error}", reason
        )
        # A row that another transaction keeps locked concerns no other claim.
        until = 0.0 if is_locked(error) else monotonic() + LEFT_ALONE_S
        self._away = away = Away(f"database unavailable: {reason}", until)
        return replace(away, is_in_doubt=is_in_doubt)

    def _claimed(self, connection: sa.Connection, call: Call) -> Held | NotStarted:
        wanted, how = call.wanted, {"repeatable": call.repeatable}
        recorded = recorded_of(connection, wanted.id, wanted.attempt)
        kept_out = self.kept_out(recorded, wanted.attempt)
        if kept_out is not None:
            return kept_out
        own = followed.claimed_before(connection, wanted.key) if call.again else None
        if own is not None:
            return own
        if recorded is not None and recorded.can_start:
            return followed.take_known(connection, recorded, wanted, **how, alerts=self.alerts)
        return followed.take(connection, wanted, **how, alerts=self.alerts)
