"""Run an operation: claim it, run its steps in order under a lease, record its end."""

import json
import logging
import os
import socket
from dataclasses import replace
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from celery import Task

from broker.app import app
from broker.in_use import settings_in_use
from broker.sending import send_started
from minutebook.error_text import text_of
from minutebook.lease import LOST, Interrupted
from minutebook.steps import StepFailed
from models.errors import DatabaseWentBack, LeaseLost, SchedulerError
from models.operation import MOST_LOSSES, OperationState
from models.store.operations import heartbeat
from models.store.operations.end import EndResult, Outcome, end
from models.store.operations.put_back import CANCELLED, failed, lost
from models.store.operations.start_checks import TAKEN, NotStarted
from models.store.operations.take import Claim, ClaimRequest, claim
from models.worker_kinds import EXECUTE_HEAVY, EXECUTE_QUICK, OURS
from runtime.config import Settings
from runtime.db_retry import persist, start
from runtime.logs.events import EventLog
from runtime.sections import AlertSettings
from tasks.engines import engine_of
from tasks.lease import Lease
from tasks.registry import Registry, registry_of
from tasks.runner import Runner, json_of
from tasks.step_states import Script

logger = EventLog("minutebook.worker")

# Ends after which the next operation finds the checkpoint.
KEEP_CHECKPOINT = {OperationState.SUCCESS, OperationState.PARTIAL, OperationState.CANCELLED}


@app.task(name=EXECUTE_HEAVY, bind=True)
def execute_scheduled_action(self: "Task[Any, Any]", operation_id: str, attempt: int) -> str:
    """Run one attempt of an operation on the heavy queue; return the outcome."""
    return _execute(self, operation_id, attempt)


@app.task(name=EXECUTE_QUICK, bind=True)
def execute_scheduled_action_quick(self: "Task[Any, Any]", operation_id: str, attempt: int) -> str:
    """Run one attempt of an operation on the quick queue; return the outcome."""
    return _execute(self, operation_id, attempt)


def _execute(task: "Task[Any, Any]", operation_id: str, attempt: int) -> str:
    settings = settings_in_use()
    worker = f"{task.request.hostname or socket.gethostname()}:{os.getpid()}"
    registry = registry_of(settings.step_modules)
    engine = engine_of(os.getpid(), settings)
    return run_attempt(engine, settings, registry, (UUID(operation_id), attempt), worker)


def run_attempt(
    engine: sa.Engine,
    settings: Settings,
    registry: Registry,
    message: tuple[UUID, int],
    worker: str,
) -> str:
    """Run the attempt named by `message` (id, attempt), if it can be claimed; return its end."""
    script = Script(registry.steps)
    claimed = _claim(engine, message, worker, script, settings.alert)
    if isinstance(claimed, NotStarted):
        logger.info(
            "operation_not_started",
            "operation {operation} attempt {attempt}: not started, {reason}",
            *message,
            claimed.why,
        )
        _send_ended(engine, claimed.ended)
        return claimed.why
    lease = Lease(engine, claimed, settings, script)
    return _run_claimed(Runner(engine, settings, registry, lease, script))


def _run_claimed(runner: Runner) -> str:
    """Run a claimed attempt under its lease; return its end, or `lost` with the lease."""
    engine, claimed = runner.engine, runner.lease.claim
    logger.info(
        "operation_started",
        "{triggerer}: operation {operation} started (attempt {attempt})",
        claimed.triggerer,
        claimed.id,
        claimed.attempt,
    )
    try:
        with runner.lease.held():
            send_started(engine, claimed.owed)
            ending = _run_steps(runner)
            # From now on only renew the lease, while the end is recorded.
            runner.lease.is_over = True
            ended = _end(runner, ending)
    except LeaseLost as error:
        _report_lost(engine, runner.lease.lost_by or error)
        return "lost"
    level = logging.ERROR if ended.state == OperationState.FAILED else logging.INFO
    logger.log(
        level,
        "operation_ended",
        "{triggerer}: operation {operation} ended: {state}{reason}",
        claimed.triggerer,
        claimed.id,
        ended.state,
        f" ({ending.why})" if ending.why else "",
    )
    _send_ended(engine, ended)
    return ended.state


def _send_ended(engine: sa.Engine, ended: EndResult | None) -> None:
    """Send what an end released, its notices, and what is due by it."""
    # Loaded when a process first ends something: a worker is ready before.
    from scheduler.events.dependants import send_ended

    send_ended(engine, ended)


def _report_lost(engine: sa.Engine, error: LeaseLost) -> None:
    """Log that another process has the operation; note it if the database lost the claim."""
    logger.warning("lease_lost", "{error}; nothing more is written", error)
    if isinstance(error, DatabaseWentBack):
        persist(engine, lambda c: heartbeat.note_went_back(c, error))


def _claim(
    engine: sa.Engine,
    message: tuple[UUID, int],
    worker: str,
    script: Script,
    alerts: AlertSettings,
) -> Claim | NotStarted:
    wanted = ClaimRequest(*message, worker)

    def claimed(connection: sa.Connection) -> Claim | NotStarted:
        return claim(connection, wanted, alerts, OURS, script.open)

    return start(message[0], lambda: persist(engine, claimed), TAKEN)


def _end(runner: Runner, ending: Outcome) -> EndResult:
    """Record the end, retrying while the database is unavailable.

    If the end cannot be stored, the operation fails with that error: it must not look like a lost
    worker.
    """
    engine, story, alerts = runner.engine, runner.story(ending), runner.settings.alert
    key = runner.lease.claim.key
    try:
        return persist(engine, lambda c: end(c, key, ending, story, alerts=alerts))
    except (sa.exc.StatementError, TypeError, ValueError) as error:
        logger.exception(
            "end_not_stored", "the end of operation {operation} cannot be stored", key.id
        )
        text = f"the end could not be stored: {type(error).__name__}"
        instead = Outcome(OperationState.FAILED, error=text, is_failure=True)
        return persist(engine, lambda c: end(c, key, instead, alerts=alerts))


def _run_steps(runner: Runner) -> Outcome:
    """Run the operation's remaining steps; return how the attempt ends."""
    try:
        ending = runner.run()
    except Interrupted:
        ending = runner.lease.ending()
        if runner.lease.asked == LOST:
            raise LeaseLost("the lease was lost while a step ran") from None
    except LeaseLost:
        raise
    except BaseException as error:  # a step's error fails only its operation
        ending = ending_of(runner, error)
    return _with_checkpoint(runner, ending)


def _with_checkpoint(runner: Runner, ending: Outcome) -> Outcome:
    """Return the end with what the steps keep for the next operation, if they did anything to it.

    One that is no JSON object fails the attempt.
    """
    keeps = ending.state in KEEP_CHECKPOINT or ending.is_put_back
    if not keeps or runner.context is None or not runner.context.has_checkpoint:
        return ending
    kept = runner.context.checkpoint
    try:
        if not isinstance(kept, dict):
            raise TypeError(f"a {type(kept).__name__}, not a dict")
        json.dumps(kept, allow_nan=False)
    except (TypeError, ValueError) as error:
        text = f"the checkpoint cannot be stored, because it is not valid JSON: {error}"
        claimed = runner.lease.claim
        return failed(claimed.plan, claimed.failures, text, permanent=True)
    return replace(ending, checkpoint=kept)


def ending_of(runner: Runner, error: BaseException) -> Outcome:
    """Return the end of an attempt whose step raised `error`."""
    claimed = runner.lease.claim
    tried = (claimed.plan, claimed.failures)
    # A signal from outside ended this process, as Celery's pool reports it.
    if isinstance(error, SystemExit) and isinstance(error.code, int) and error.code < 0:
        step, is_asked = runner.lease.unrepeatable, runner.lease.asked_to_end() is CANCELLED
        return lost(claimed.losses, "a signal ended its process", step, step is None, is_asked)
    match error:
        case StepFailed():
            runner.failed_with = json_of(error.details)
            return failed(*tried, str(error), permanent=error.permanent)
        case SchedulerError():
            # An unknown step or an invalid document: a retry cannot help.
            return failed(*tried, str(error), permanent=True)
        case sa.exc.OperationalError() | sa.exc.InterfaceError() | sa.exc.InternalError():
            return database_was_away(runner, error)
    logger.error("operation_failed", "operation {operation} failed", claimed.id, exc_info=error)
    return failed(*tried, text_of(error))


def database_was_away(runner: Runner, error: sa.exc.DBAPIError) -> Outcome:
    """Return the end of an attempt whose step found the database unavailable.

    In a built-in step it was Minutebook's database, so the attempt is put back like a lost one. In
    a user-defined step it may be any database, so the attempt fails.
    """
    claimed = runner.lease.claim
    text = f"database unavailable: {error.orig}"
    if runner.runs_step_of_users or claimed.losses >= MOST_LOSSES:
        return failed(claimed.plan, claimed.failures, text)
    return Outcome(OperationState.PENDING, error=text, reason="database unavailable", is_loss=True)
