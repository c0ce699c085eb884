"""The steps of one attempt, in order, beginning at the first that did not succeed."""

import json
import logging
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from minutehand.steps import NoParameters, Recipient, SmallApp, StepOutcome, StepResult
from models.action import ScheduledActionModel, load_action
from models.operation import OperationState, StepState
from models.steps import BUILT_IN_STEPS, StepModel
from models.store import running, small_apps, users
from models.store.running import Ending, Memory
from runtime.config import Settings
from tasks.context import WorkContext
from tasks.lease import Lease
from tasks.persist import persist
from tasks.progress import LineHandler, Progress
from tasks.registry import Registry

MANUAL = "Manual run"
# One for all operations: a logger lives as long as its process, which runs one at a time.
STEP_LOGGER = "minutehand.operation"


class Runner:
    """Runs an attempt's steps and keeps their story in the operation's row."""

    def __init__(
        self, engine: sa.Engine, settings: Settings, registry: Registry, lease: Lease
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.registry = registry
        self.lease = lease
        self.checkpoint: dict[str, Any] = {}
        self.progress = Progress(engine, lease.claim.id, lease.claim.attempt, [])
        self.results: dict[str, Any] = {}
        self._running: int | None = None

    @property
    def runs_built_in_step(self) -> bool:
        """Whether the step that runs now is one of ours."""
        if self._running is None:
            return True
        return self.progress.steps[self._running]["name"] in BUILT_IN_STEPS

    def run(self) -> Ending:
        """Run the steps; return how the attempt ends. Raises what a step raises."""
        claim = self.lease.claim
        action = load_action(json.loads(claim.document), steps=self.registry.user_specs())
        steps = action.operations.steps
        self.progress.steps = _stories(steps, claim.steps)
        context = self._context(action)
        handler = LineHandler(self.progress)
        logger = logging.getLogger(STEP_LOGGER)
        # The row keeps what the terminal may be too quiet for.
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        try:
            return self._run_all(steps, context)
        finally:
            logger.removeHandler(handler)

    def note_end(self, ending: Ending) -> None:
        """Write how the step that was cut off ended, if one was."""
        if self._running is None:
            return
        story = {"error": ending.error or ending.reason}
        is_put_back = ending.state is OperationState.PENDING and not ending.is_failure
        state = StepState.WAITING if is_put_back else StepState.FAILED
        self.progress.end_step(self._running, state, **story)

    def _run_all(self, steps: tuple[StepModel, ...], context: WorkContext) -> Ending:
        states = []
        for index, step in enumerate(steps):
            story = self.progress.steps[index]
            if story["state"] == StepState.SUCCESS:
                self.results[step.name] = story.get("details", {})
                continue
            asked = self.lease.asked_to_end()
            if asked is not None:
                return asked
            result = self._run_step(index, step, context)
            states.append(result.outcome)
            asked = self.lease.asked_to_end()
            if result.outcome is StepOutcome.PARTIAL and self.lease.stop_was_seen and asked:
                return asked
        is_partial = StepOutcome.PARTIAL in states
        state = OperationState.PARTIAL if is_partial else OperationState.SUCCESS
        return Ending(state, result=self.results)

    def _run_step(self, index: int, step: StepModel, context: WorkContext) -> StepResult:
        function = self.registry.function(step.name)
        if step.spec is not None:
            context.parameters = step.spec.parameters.model_validate(step.parameters)
        self.progress.begin_step(index)
        self._running = index
        self.lease.stop_was_seen = False
        may_repeat = step.spec is None or step.spec.repeatable
        self.lease.unrepeatable = None if may_repeat else step.name
        with self.lease.interruptible():
            result = _as_json(function(context) or StepResult())
        self.lease.unrepeatable = None
        self._running = None
        self.results[step.name] = result.details
        self.progress.end_step(
            index, StepState(result.outcome), message=result.message, details=result.details
        )
        return result

    def _read(
        self, connection: sa.Connection, action: ScheduledActionModel
    ) -> tuple[Memory, SmallApp, list[Recipient]]:
        claim = self.lease.claim
        app = small_apps.by_id(connection, claim.small_app_id)
        rule = action.recipients
        recipients = [] if rule is None else users.recipients_of(connection, app.id, rule)
        return running.memory(connection, claim.action_uid, claim.subject), app, recipients

    def _context(self, action: ScheduledActionModel) -> WorkContext:
        claim = self.lease.claim
        memory, app, recipients = persist(self.engine, lambda c: self._read(c, action))
        self.checkpoint = memory.checkpoint
        return WorkContext(
            operation_id=claim.id,
            occurrence_at=claim.occurrence_at,
            attempt=claim.attempt,
            subject=claim.subject,
            triggerer=claim.triggerer,
            parameters=NoParameters(),
            small_app=SmallApp(app.id, app.name, app.zone),
            recipients=recipients,
            run_number=memory.run_number + 1,
            last_success_at=memory.last_success_at,
            checkpoint=self.checkpoint,
            logger=logging.getLogger(STEP_LOGGER),
            engine=self.engine,
            settings=self.settings,
            is_manual=claim.triggerer.startswith(MANUAL),
            reporter=self.progress,
            time_left_source=self.lease.time_left,
            should_stop_source=self.lease.should_stop,
        )


def _as_json(result: StepResult) -> StepResult:
    """Return the result with details that JSON can hold: what it cannot becomes text."""
    details = json.loads(json.dumps(result.details, default=str, skipkeys=True))
    return replace(result, details=details)


def _stories(steps: tuple[StepModel, ...], earlier: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps as the row shows them: those that succeeded earlier stay as they are."""
    succeeded = {
        story["name"]: story for story in earlier if story.get("state") == StepState.SUCCESS
    }
    stories = []
    is_beginning = True
    for step in steps:
        is_beginning = is_beginning and step.name in succeeded
        fresh = {
            "name": step.name,
            "state": StepState.WAITING,
            "repeatable": step.spec is None or step.spec.repeatable,
        }
        stories.append(succeeded[step.name] if is_beginning else fresh)
    return stories
