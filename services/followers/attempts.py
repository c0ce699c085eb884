"""What is written of the attempts of followed tasks: claims, ends and discarded messages."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import UNSTARTED, AttemptKey, OperationState
from models.store.operations import (
    external_send,
    external_worker,
    put_back,
    refusals,
)
from models.store.operations.end import EndResult, Outcome, end
from models.store.operations.put_back import CUT_OFF, STOPPED_IN_TIME, failed, lost, lost_task
from models.store.operations.start_checks import EXPIRED, NotStarted, OperationFacts
from models.store.operations.take import Claim, ClaimRequest, recorded_of, start_free
from models.tables import operations
from models.worker_kinds import CELERY
from runtime.clock import utc_now
from runtime.sections import AlertSettings
from runtime.sections.celery import HIDDEN
from tasks.steps.celery_task import STEP

# The message came before its attempt was recorded: its task was just put back.
EARLY = NotStarted("its attempt is not recorded yet")
CELERY_RETRY = "Celery's retry"
PUT_BACK = "put back by its task"
REVOKED = "revoked"
# Celery checks time limits once a second, and our clock starts slightly later.
ABOUT_S = 0.5


class JustBeingSent(Exception):
    """An operation cannot be ended yet: its message is still recorded as being sent."""


def take(
    connection: sa.Connection,
    recorded: OperationFacts,
    wanted: ClaimRequest,
    *,
    repeatable: bool,
    alerts: AlertSettings,
) -> Claim | NotStarted:
    """Start an attempt for a worker, or return why it does not start.

    `recorded` was read in the same transaction. `repeatable`: the task may begin twice. The caller
    commits in either case. Raises as `claim` does.
    """
    its, known = (wanted.id, wanted.attempt), recorded
    if not (recorded.can_start or recorded.is_held_by(wanted.secret)):
        # Checked first: an attempt put back during the claim would look paused.
        runs_before = recorded.state == OperationState.RUNNING
        if runs_before and recorded.last_attempt == recorded.attempt - 1:
            return EARLY
        if external_worker.take_up(connection, *its):
            known = recorded_of(connection, *its) or recorded
    step = external_worker.begun(STEP, repeatable=repeatable)
    return external_worker.take(connection, wanted, CELERY, step, alerts, known)


def take_free(
    connection: sa.Connection, recorded: OperationFacts, wanted: ClaimRequest, *, repeatable: bool
) -> Claim | None:
    """Start an attempt that no rule can keep back, by one statement; None if `take` must decide."""
    step = external_worker.begun(STEP, repeatable=repeatable)
    found = start_free(connection, recorded, wanted, external_worker.columns_of(step))
    return found and replace(found, steps=[step])


def finish(
    connection: sa.Connection,
    recorded: OperationFacts,
    key: AttemptKey,
    report: Mapping[str, Any],
    alerts: AlertSettings,
) -> EndResult:
    """End an attempt as its worker reports; raises LeaseLost."""
    step = (recorded.steps or [{"name": STEP}])[0]
    ending = _ending(recorded, report, may_repeat=bool(step.get("repeatable")))
    ended = external_worker.finish(connection, key, step, ending, alerts, report)
    if report["outcome"] in {"retry", "replaced"} and ended.state is OperationState.PENDING:
        external_send.await_message(connection, key.id, key.attempt + 1, _delay(report))
        if not report.get("is_followed", True):
            unfollowed = f"{ending.reason}, which no worker follows"
            external_send.hand_over(connection, (key.id, key.attempt + 1), unfollowed, alerts)
    return ended


_ENDINGS: Mapping[str, Outcome] = {
    "success": Outcome(OperationState.SUCCESS, result={STEP: {}}),
    "time box": STOPPED_IN_TIME,
    "given back": Outcome(OperationState.PENDING, reason="given back: its task had not begun"),
    **CUT_OFF,
}


def _ending(recorded: OperationFacts, report: Mapping[str, Any], *, may_repeat: bool) -> Outcome:
    error, is_asked = str(report.get("error")), recorded.cancel_requested_at is not None
    tried = (recorded.plan, recorded.failures)
    match report["outcome"]:
        case "cut off":
            return lost_task(lost(recorded.losses, error, STEP, may_repeat, is_asked), *tried)
        case "failed":
            return failed(*tried, error)
        case "retry":
            return Outcome(OperationState.PENDING, error=error, reason=CELERY_RETRY)
        case "replaced":
            return Outcome(OperationState.PENDING, reason=f"replaced by {report.get('by')}")
        case "put back":
            return Outcome(OperationState.PENDING, reason=PUT_BACK)
    return _ENDINGS[report["outcome"]]


def end_discarded(
    connection: sa.Connection,
    recorded: OperationFacts,
    wanted: ClaimRequest,
    said: Mapping[str, str],
    alerts: AlertSettings,
) -> EndResult | None:
    """End an operation whose message Celery discarded; None if there is nothing to end.

    An expired attempt is skipped. A revoke discards every attempt, because all have one id: an
    attempt that waits is cancelled, and a running one is asked to end. One whose task is unknown,
    or whose message was rejected, fails. Raises JustBeingSent.
    """
    if said["what"] == EXPIRED:
        return refusals.skip(connection, wanted.id, wanted.attempt, EXPIRED)
    if said["what"] == REVOKED:
        return _end_revoked(connection, wanted.id, said["reason"])
    found = take(connection, recorded, wanted, repeatable=False, alerts=alerts)
    if found is EARLY:
        raise JustBeingSent
    if isinstance(found, NotStarted):
        return found.ended
    ending = failed(found.plan, found.failures, said["reason"])
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


def _delay(report: Mapping[str, Any]) -> timedelta:
    if report.get("at") is None:
        return timedelta(seconds=max(0.0, float(report.get("delay_s") or 0.0)))
    at = datetime.fromisoformat(report["at"])
    now = utc_now()
    return max(timedelta(0), (at if at.tzinfo else at.replace(tzinfo=now.tzinfo)) - now)


MOST_LINES = 100
LONGEST_LINE = 1_000
_SAID = ("traceback", "returned")


def in_lines(report: Mapping[str, Any], hidden: re.Pattern[str] | None) -> dict[str, Any]:
    """Return a report with log lines in place of what the task said of its end, redacted."""

    def shown(line: object) -> str:
        text = str(line)[:LONGEST_LINE]
        return text if hidden is None else hidden.sub(HIDDEN, text)

    at, given, returned = utc_now().isoformat(), report.get("traceback"), report.get("returned")
    lines = [
        {"at": at, "level": "ERROR", "message": shown(line)}
        for line in (given[-MOST_LINES:] if isinstance(given, list) else ())
    ]
    if isinstance(returned, str):
        lines.append({"at": at, "level": "INFO", "message": shown(f"returned {returned}")})
    kept = {key: value for key, value in report.items() if key not in (*_SAID, "lines")}
    return {**kept, "lines": lines} if lines else kept
