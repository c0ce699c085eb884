"""Run the steps of one attempt in order, beginning at the first that has not succeeded."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import ValidationError

from minutebook.steps import NoParameters, Recipient, SmallApp, StepFailed, StepOutcome, StepResult
from models.action.allowed import refused_to
from models.action.document import ScheduledActionModel
from models.action.steps import StepModel
from models.operation import Cause, OperationState, StepState
from models.problems import problems_of
from models.store import tenants
from models.store.operations.end import Outcome
from models.store.operations.heartbeat import ProgressUpdate, RunHistory, memory
from models.store.people import users
from runtime.config import Settings
from runtime.database import reading
from runtime.db_retry import persist
from runtime.logs.events import STEP_LOGGER
from tasks.lease import Lease
from tasks.progress import LineHandler
from tasks.registry import Registry
from tasks.step_context import WorkContext
from tasks.step_states import Script

# Causes requested by a user, as opposed to the schedule or a backfill.
BY_USERS = frozenset({Cause.MANUAL, Cause.RETRY})

T = TypeVar("T")


class Runner:
    """Runs an attempt's steps and records them in the operation's row."""

    def __init__(
        self,
        engine: sa.Engine,
        settings: Settings,
        registry: Registry,
        lease: Lease,
        script: Script,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.registry = registry
        self.lease = lease
        self.script = script
        self.progress = lease.progress
        self.results: dict[str, Any] = {}
        # The figures of the step that failed.
        self.failed_with: dict[str, Any] = {}
        self._running: int | None = None
        # What the steps are given, once they run.
        self.context: WorkContext | None = None

    @property
    def runs_step_of_users(self) -> bool:
        """Whether a step runs that is not built in."""
        running = self._running
        if running is None:
            return False
        spec = self.script.action.operations.steps[running].spec
        return spec is not None and not spec.is_built_in

    def run(self) -> Outcome:
        """Run the steps; return how the attempt ends. Raises what a step raises."""
        action = self.script.action
        self.context = context = self._context(action)
        handler = LineHandler(self.progress)
        logger = logging.getLogger(STEP_LOGGER)
        # The row keeps INFO lines, whatever the terminal's level is. Setting a level makes all
        # loggers forget theirs.
        if logger.level != logging.INFO:
            logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        try:
            return self._run_all(action.operations.steps, context)
        finally:
            logger.removeHandler(handler)

    def story(self, ending: Outcome) -> ProgressUpdate:
        """Return what is to be written at the end, including the end of a step that was cut off."""
        if self._running is not None:
            self.script.cut_off(self._running, ending, self.failed_with)
        elif self.script.announced is not None:
            self.script.take_back(self.script.announced)
        return self.progress.last()

    def _run_all(self, steps: tuple[StepModel, ...], context: WorkContext) -> Outcome:
        states: dict[str, StepOutcome] = {}
        partly: list[str] = []
        for index, step in enumerate(steps):
            story = self.script.stories[index]
            if story["state"] == StepState.SUCCESS:
                self.results[step.name] = story.get("details", {})
                continue
            asked = self.lease.asked_to_end()
            if asked is not None:
                return asked
            self._prepare(step, context)
            if why := _why_left_out(step, context, states):
                context.logger.warning("%s is left out: %s", step.name, why)
                self.script.end(index, StepState.SKIPPED, message=why)
                continue
            result = self._run_step(index, step, context)
            states[step.name] = result.outcome
            asked = self.lease.asked_to_end()
            if result.outcome is not StepOutcome.PARTIAL:
                continue
            if self.lease.stop_was_seen and asked:
                return asked
            partly.append(f"{step.name}: {result.message or 'ended partial'}")
        state = OperationState.PARTIAL if partly else OperationState.SUCCESS
        return Outcome(state, error="; ".join(partly) or None, result=self.results)

    def _run_step(self, index: int, step: StepModel, context: WorkContext) -> StepResult:
        function = self.registry.function(step.name)
        if index != self.script.announced:
            self.progress.begin_step(index)
        self._running, self.script.announced = index, None
        self.lease.stop_was_seen = False
        may_repeat = step.spec is None or step.spec.repeatable
        self.lease.unrepeatable = None if may_repeat else step.name
        with self.lease.interruptible():
            result = _result_of(step.name, function(context))
        self.lease.unrepeatable = None
        self._running = None
        self.results[step.name] = result.details
        state = StepState(result.outcome)
        self.script.end(index, state, message=result.message, details=result.details)
        return result

    def _prepare(self, step: StepModel, context: WorkContext) -> None:
        """Set the step's parameters; raises StepFailed, also for what may not run."""
        for name, why in refused_to(step, self.lease.claim.trust, self.settings.commands):
            what = step.name if name == step.name else f"{step.name}: {name!r}"
            raise StepFailed(f"step {what} {why}", permanent=True)
        spec = step.spec
        if spec is None:
            return
        try:
            context.parameters = spec.parameters.model_validate(step.parameters)
        except ValidationError as error:
            # A new version of a step may require more than what was saved.
            problems = "; ".join(str(one) for one in problems_of(error))
            raise StepFailed(f"step {step.name}: {problems}", permanent=True) from None

    def _recipients(self, action: ScheduledActionModel) -> list[Recipient]:
        rule, subject = action.recipients, self.lease.claim.subject
        app = self.lease.claim.small_app
        if subject is not None:
            # The claim checked whether the user is selected.
            user = self._read(lambda c: users.find(c, app.id, subject))
            return [] if user is None else [users.as_recipient(user)]
        if rule is None:
            return []
        return self._read(lambda c: users.recipients_of(c, app.id, rule))

    def _small_app(self) -> SmallApp:
        app = self.lease.claim.small_app
        return replace(app, settings=self._read(lambda c: tenants.settings_of(c, app.id)))

    def _memory(self) -> RunHistory:
        # Not read by the claim. Meanwhile another operation ends only if both may run at once: that
        # of an event, or with the overlap policy `allow`.
        its = (self.lease.claim.action_uid, self.lease.claim.subject)
        return self._read(lambda c: memory(c, *its))

    def _read(self, read: Callable[[sa.Connection], T]) -> T:
        # A step may ask in a transaction of its own, which on SQLite no other writer may join.
        return persist(self.engine, read, reading)

    def _context(self, action: ScheduledActionModel) -> WorkContext:
        claim = self.lease.claim
        return WorkContext(
            operation_id=claim.id,
            occurrence_at=claim.occurrence_at,
            attempt=claim.attempt,
            subject=claim.subject,
            triggerer=claim.triggerer,
            parameters=NoParameters(),
            recipients=self._recipients(action),
            app_source=self._small_app,
            memory_source=self._memory,
            key=claim.key,
            logger=logging.getLogger(STEP_LOGGER),
            engine=self.engine,
            settings=(
                self.settings
                if claim.trust.is_trusted
                else self.settings.restricted_to(claim.app_name)
            ),
            is_manual=claim.cause in BY_USERS,
            notify=claim.notify,
            reporter=self.progress,
            time_left_source=self.lease.time_left,
            should_stop_source=self.lease.should_stop,
            attempts_left=max(0, claim.plan.policy.retry.max_attempts - claim.failures - 1),
            failed_modules=self.registry.failed,
        )


def _why_left_out(
    step: StepModel, context: WorkContext, ended: Mapping[str, StepOutcome]
) -> str | None:
    """Return why a step is not run: the one that it builds on did only a part of its work."""
    builds_on = None if step.spec is None else step.spec.builds_on
    if builds_on is None or ended.get(builds_on) is not StepOutcome.PARTIAL:
        return None
    if getattr(context.parameters, "after_partial", False):
        return None
    return (
        f'{builds_on} ended partial, and {step.name} builds on it; "after_partial": true in '
        f"{step.name} runs it in spite of that"
    )


def _result_of(name: str, returned: object) -> StepResult:
    """Return a step's result; details that JSON cannot represent become text.

    Raises StepFailed if the outcome is neither success nor partial.
    """
    result = StepResult() if returned is None else returned
    if not isinstance(result, StepResult):
        text = f"step {name} returned a {type(result).__name__}, not a StepResult or None"
        raise StepFailed(text, permanent=True)
    try:
        outcome = StepOutcome(result.outcome)
    except ValueError:
        advice = "return success or partial, or raise StepFailed"
        text = f"step {name} returned outcome {result.outcome!r}; {advice}"
        raise StepFailed(text, permanent=True) from None
    message = "" if result.message is None else str(result.message)
    return StepResult(message, outcome, json_of(result.details))


def json_of(details: dict[str, Any] | None) -> dict[str, Any]:
    """Return a step's figures as JSON that each store can keep."""
    written = json.dumps(details or {}, default=str, skipkeys=True)
    # PostgreSQL's JSON has no NaN.
    read: dict[str, Any] = json.loads(written, parse_constant=str)
    return read
