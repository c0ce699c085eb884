"""What an agent writes for its worker: claims, renewals, progress and ends of operations."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.carriers import CELERY
from models.errors import LeaseLost
from models.operation import UNSTARTED, AttemptKey, OperationState
from models.sql import in_unindexed
from models.store.operations import (
    external_end,
    external_send,
    external_worker,
    heartbeat,
    put_back,
    refusals,
)
from models.store.operations.end import EndResult, Outcome, end
from models.store.operations.external_end import hand_over
from models.store.operations.put_back import CUT_OFF, STOPPED_IN_TIME, failed, lost, lost_task
from models.store.operations.start_checks import EXPIRED, TAKEN, NotStarted, OperationFacts
from models.store.operations.take import Claim, ClaimRequest, recorded_of
from models.store.operations.transitions import RUNNING
from models.tables import operations
from runtime.clock import monotonic, utc_now
from runtime.sections import AlertSettings
from tasks.steps.celery_task import STEP

# The message came before its attempt was recorded: its task was just put back.
EARLY = NotStarted("early")
CELERY_RETRY = "Celery's retry"
# The reasons that `minutebook.discarded` reports.
REVOKED, UNKNOWN_TASK = "revoked", "unknown"
PUT_BACK = "put back by its task"
# Celery checks time limits once a second, and our clock starts slightly later.
ABOUT_S = 0.5
# The operation was pruned, or belongs to another installation.
UNKNOWN = NotStarted(
    "unknown: the agent's database has no such operation; check SCHED_DATABASE_URL or SCHED_HOME of"
    " this worker"
)


class JustBeingSent(Exception):
    """An operation cannot be ended yet: its message is still recorded as being sent."""


@dataclass
class Held:
    """An attempt that a worker of the user's application runs."""

    claim: Claim
    step: external_worker.Step
    # What the action knows of its operations before.
    memory: heartbeat.RunHistory
    # Whether its task may have begun; before that, no work can be lost.
    has_started: bool = False
    # When Celery's own time limit ends its process, by the machine's monotonic clock.
    killed_at: float | None = None

    @property
    def key(self) -> AttemptKey:
        """The key of the attempt: its secret is the random name of the call that claimed it."""
        return self.claim.key


def take(
    connection: sa.Connection, wanted: ClaimRequest, *, repeatable: bool, alerts: AlertSettings
) -> Held | NotStarted:
    """Start an attempt for a worker, or return why it does not start.

    `repeatable`: the task may begin twice. The secret is the random name of the call that asks.
    The caller commits its transaction in either case. Raises as `claim` does.
    """
    its = (wanted.id, wanted.attempt)
    if _comes_early(connection, its):
        # Checked first: an attempt put back during the claim would look paused.
        return EARLY
    external_end.take_up(connection, *its)
    step = external_worker.begun(STEP, repeatable=repeatable)
    found = external_worker.take(connection, wanted, CELERY, step, alerts)
    if isinstance(found, Claim):
        return _held(connection, found, step)
    is_known = found is not TAKEN or recorded_of(connection, *its) is not None
    return found if is_known else UNKNOWN


def take_known(
    connection: sa.Connection,
    recorded: OperationFacts,
    wanted: ClaimRequest,
    *,
    repeatable: bool,
    alerts: AlertSettings,
) -> Held | NotStarted:
    """Start an attempt that could start when it was read, in the same transaction; see `take`."""
    step = external_worker.begun(STEP, repeatable=repeatable)
    found = external_worker.take(connection, wanted, CELERY, step, alerts, recorded)
    return _held(connection, found, step) if isinstance(found, Claim) else found


def _held(connection: sa.Connection, claimed: Claim, step: external_worker.Step) -> Held:
    # Read after the start: no other operation of the action can end any more.
    known = heartbeat.memory(connection, claimed.action_uid, claimed.subject)
    return Held(claimed, step, known)


def _comes_early(connection: sa.Connection, its: tuple[UUID, int]) -> bool:
    id, attempt = its
    before = sa.select(sa.literal(1)).where(
        operations.c.id == id,
        operations.c.attempt == attempt - 1,
        in_unindexed(operations.c.state, RUNNING),
    )
    return connection.execute(before).first() is not None


def end_discarded(
    connection: sa.Connection, its: tuple[UUID, int], said: Mapping[str, Any], alerts: AlertSettings
) -> EndResult | None:
    """End an operation whose message Celery discarded; None if there is nothing to end.

    An expired attempt is skipped. A revoke discards every attempt, because all have one id: an
    attempt that waits is cancelled, and a running one is asked to end. An unknown task fails.
    Raises JustBeingSent.
    """
    if said["what"] == EXPIRED:
        return refusals.skip(connection, *its, EXPIRED)
    if said["what"] == REVOKED:
        return _end_revoked(connection, its[0], str(said["reason"]))
    wanted = ClaimRequest(*its, said["worker"])
    found = take(connection, wanted, repeatable=False, alerts=alerts)
    if found is EARLY:
        raise JustBeingSent
    if isinstance(found, NotStarted):
        return found.ended
    ending = failed(found.claim, str(said["reason"]), permanent=False)
    return end(connection, found.key, ending, alerts=alerts)


def _end_revoked(connection: sa.Connection, id: UUID, reason: str) -> EndResult | None:
    ended = refusals.cancel(connection, id, reason)
    if ended is not None:
        return ended
    state = sa.select(operations.c.state).where(operations.c.id == id)
    is_asked = put_back.ask_to_cancel(connection, id, reason)
    if not is_asked and connection.execute(state).scalar_one_or_none() in UNSTARTED:
        raise JustBeingSent
    return None


def described(held: Held) -> dict[str, Any]:
    """Return what a task may read of its operation, as JSON."""
    found, last = held.claim, held.memory.last_success_at
    return {
        "operation_id": str(found.id),
        "attempt": found.attempt,
        "occurrence_at": found.occurrence_at.isoformat(),
        "subject": found.subject,
        "triggerer": found.triggerer,
        "run_number": held.memory.run_number + 1,
        "last_success_at": None if last is None else last.isoformat(),
    }


def resume(connection: sa.Connection, key: AttemptKey) -> Held:
    """Return an attempt that a worker still runs after its agent restarted; raises LeaseLost.

    Only the call that claimed it knows its random name: id and attempt stand in every message.
    """
    recorded = recorded_of(connection, key.id, key.attempt)
    is_its_own = recorded is not None and recorded.carrier is CELERY
    if recorded is None or not (is_its_own and recorded.is_held_by(key.secret)):
        raise LeaseLost(f"{key.words} was not claimed by this call")
    heartbeat.beat(connection, key)
    step = (recorded.steps or [{}])[0]
    return replace(_held(connection, Claim(**vars(recorded), key=key), step), has_started=True)


def claimed_before(connection: sa.Connection, key: AttemptKey) -> Held | None:
    """Return a running attempt that the same call claimed from an agent that is gone, or None."""
    # Waits for a claim that is still being committed.
    its_row = sa.select(operations.c.id).where(operations.c.id == key.id)
    connection.execute(its_row.with_for_update(key_share=True)).first()
    try:
        return replace(resume(connection, key), has_started=False)
    except LeaseLost:
        return None


def write_end(
    connection: sa.Connection, held: Held, report: Mapping[str, Any], alerts: AlertSettings
) -> EndResult:
    """End an attempt as its worker reports; raises LeaseLost, ValueError for a wrong outcome."""
    ending, (id, attempt, _) = _ending(held, report), held.key
    ended = external_worker.finish(connection, held.key, held.step, ending, alerts, report)
    if report["outcome"] in {"retry", "replaced"} and ended.state is OperationState.PENDING:
        external_send.await_message(connection, id, attempt + 1, _delay(report))
        if not report.get("is_followed", True):
            unfollowed = f"{ending.reason}, which no worker follows"
            hand_over(connection, [(id, attempt + 1)], unfollowed, alerts)
    return ended


_ENDINGS: Mapping[str, Outcome] = {
    "success": Outcome(OperationState.SUCCESS, result={STEP: {}}),
    "time box": STOPPED_IN_TIME,
    **CUT_OFF,
}


def _ending(held: Held, report: Mapping[str, Any]) -> Outcome:
    outcome, error = str(report["outcome"]), report.get("error")
    match outcome:
        case "failed":
            return failed(held.claim, str(error), permanent=False)
        case "retry":
            return Outcome(OperationState.PENDING, error=error, reason=CELERY_RETRY)
        case "replaced":
            return Outcome(OperationState.PENDING, reason=f"replaced by {report['by']}")
        case "put back":
            return Outcome(OperationState.PENDING, reason=PUT_BACK)
        case "cut off":
            return left_behind(held, str(error))
    if outcome not in _ENDINGS:
        raise ValueError(f"outcome {outcome!r} is unknown")
    return _ENDINGS[outcome]


def left_behind(held: Held, error: str, *, cancel_requested: bool = False) -> Outcome:
    """Return the end of an attempt whose process is gone or about to end."""
    if not held.has_started:
        return Outcome(OperationState.PENDING, reason="given back: its task had not begun")
    if held.killed_at is not None and monotonic() >= held.killed_at - ABOUT_S:
        return failed(held.claim, "Celery's own time limit ended the task", permanent=False)
    may_repeat = bool(held.step.get("repeatable"))
    ending = lost(held.claim.losses, error, STEP, may_repeat, cancel_requested)
    return lost_task(ending, held.claim)


def end_left_behind(connection: sa.Connection, held: Held, alerts: AlertSettings) -> EndResult:
    """End an attempt whose process is gone; raises LeaseLost."""
    asked = sa.select(operations.c.cancel_requested_at).where(operations.c.id == held.key.id)
    is_asked = connection.execute(asked).scalar_one_or_none() is not None
    ending = left_behind(held, "its process is gone", cancel_requested=is_asked)
    return end(connection, held.key, ending, alerts=alerts)


def give_back_in_doubt(
    connection: sa.Connection, key: AttemptKey, alerts: AlertSettings
) -> EndResult | None:
    """Give back an attempt whose claim was committed unheard; None if it was not, or has ended."""
    own = claimed_before(connection, key)
    return None if own is None else end_left_behind(connection, own, alerts)


def _delay(report: Mapping[str, Any]) -> timedelta:
    if "at" not in report:
        return timedelta(seconds=max(0.0, float(report.get("delay_s", 0.0))))
    at = datetime.fromisoformat(report["at"])
    now = utc_now()
    return max(timedelta(0), (at if at.tzinfo else at.replace(tzinfo=now.tzinfo)) - now)
