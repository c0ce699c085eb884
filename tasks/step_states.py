"""The steps of one attempt and their states, as the operation's row shows them."""

import json
from typing import Any

from minutebook.steps import Steps
from models.action.document import ScheduledActionModel, load_action
from models.action.steps import StepModel
from models.operation import StepState
from models.store.operations import external_worker
from models.store.operations.end import Outcome
from runtime.clock import utc_now

ENDED_WELL = {StepState.SUCCESS, StepState.PARTIAL, StepState.SKIPPED}
_EMPTY: tuple[object, ...] = (None, "", {})


class Script:
    """The steps of an attempt; `stories` has the state of each, in order."""

    def __init__(self, specs: Steps) -> None:
        self.specs = specs
        self.stories: list[dict[str, Any]] = []
        # The step whose start the claim writes: if its worker is lost, it may have begun.
        self.announced: int | None = None
        self._opened: ScheduledActionModel | Exception = ValueError("nothing was opened")

    @property
    def action(self) -> ScheduledActionModel:
        """The action in the revision that the operation runs; raises the error of `open`."""
        if isinstance(self._opened, Exception):
            raise self._opened
        return self._opened

    def open(self, document: str, earlier: list[dict[str, Any]]) -> dict[str, Any]:
        """Read the document; return the values that the claim writes: the first step begins.

        Steps that succeeded in earlier attempts are kept. An invalid document must not undo the
        claim: `action` raises its error later.
        """
        try:
            action = load_action(json.loads(document), steps=self.specs)
        except Exception as error:  # any error fails only this operation
            self._opened, self.stories = error, earlier
            return {"steps": earlier}
        self._opened, self.stories = action, _stories(action.operations.steps, earlier)
        waiting = (n for n, one in enumerate(self.stories) if one["state"] != StepState.SUCCESS)
        self.announced = next(waiting, None)
        return {"steps": self.stories} if self.announced is None else self.begin(self.announced)

    def begin(self, index: int) -> dict[str, Any]:
        """Record that a step starts; return the row's values, with the counts cleared."""
        self._change(index, state=StepState.RUNNING, started_at=utc_now().isoformat(), error=None)
        shown = external_worker.columns_of(self.stories[index])
        return {**shown, "steps": self.stories, "progress": self.progress()}

    def end(self, index: int, state: StepState, **story: Any) -> None:
        """Record how a step ended: `message`, `details` or `error`."""
        self._change(index, state=state, finished_at=utc_now().isoformat(), **story)

    def cut_off(self, index: int, ending: Outcome, details: dict[str, Any]) -> None:
        """Record that a step was cut off when its attempt ended, with its figures, if any."""
        figures = {"details": details} if details else {}
        self.end(index, ending.cut_off_step, error=ending.why, **figures)

    def take_back(self, index: int) -> None:
        """Record that a step that was announced never started."""
        self._change(index, state=StepState.WAITING)
        for key in ("started_at", "error"):
            self.stories[index].pop(key, None)

    def progress(self, of_step: float = 0.0) -> float:
        """Return the operation's progress when its running step is at `of_step` (0…1)."""
        done = sum(step["state"] in ENDED_WELL for step in self.stories)
        return min(1.0, (done + of_step) / len(self.stories)) if self.stories else 0.0

    def _change(self, index: int, **story: Any) -> None:
        changed = {**self.stories[index], **story}
        # Stored with each operation: what is empty would be a third of it.
        self.stories[index] = {key: one for key, one in changed.items() if one not in _EMPTY}


def _stories(steps: tuple[StepModel, ...], earlier: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps as the row shows them; those that succeeded earlier are kept."""
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
            **({} if step.spec is None or step.spec.repeatable else {"repeatable": False}),
        }
        stories.append(succeeded[step.name] if is_beginning else fresh)
    return stories
