"""Steps of our own for the acceptance tests, loaded by SCHED_STEP_MODULES.

Each appends a line to the file named by MINUTEBOOK_TRACE when it starts and when it ends: a step
cut off by a kill has no end.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

import minutebook
from minutebook import StepContext, StepFailed, StepOutcome, StepResult

POLL_S = 0.02
LONGEST_WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Line:
    """A step's start or end, in the order in which they happened."""

    operation: UUID
    attempt: int
    step: str
    pid: int
    what: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The side effects of all steps of one installation."""

    path: Path

    def lines(self, operation: UUID | None = None) -> list[Line]:
        """Return all whole lines, or those of one operation, oldest first."""
        if not self.path.exists():
            return []
        found = [json.loads(line) for line in self.path.read_text().splitlines()]
        lines = [Line(**{**one, "operation": UUID(one["operation"])}) for one in found]
        return [line for line in lines if operation in {None, line.operation}]

    def story(self, operation: UUID) -> list[tuple[int, str, str]]:
        """Return what one operation's steps did: (attempt, step, start or end)."""
        return [(line.attempt, line.step, line.what) for line in self.lines(operation)]

    def starts(self, operation: UUID | None = None) -> list[Line]:
        return [line for line in self.lines(operation) if line.what == "start"]


class TraceParameters(BaseModel):
    """What a step of the tests does between its start and its end."""

    model_config = ConfigDict(extra="forbid")

    # Blocks until this file exists.
    until: str | None = None
    # Swallows whatever is raised in it while it blocks.
    ignores_interrupts: bool = False
    # Ends with a partial result once it is told to stop.
    heeds_stop: bool = False
    # Asks in a tight loop whether to stop.
    asks_always: bool = False


def note(context: StepContext, step: str, what: str) -> None:
    """Append one line, whole, whoever else writes."""
    line = {
        "operation": str(context.operation_id),
        "attempt": context.attempt,
        "step": step,
        "pid": os.getpid(),
        "what": what,
    }
    file = os.open(os.environ["MINUTEBOOK_TRACE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
    finally:
        os.close(file)


def run(context: StepContext, step: str) -> StepResult:
    """Do what the parameters say; the start and the end are noted."""
    wanted = context.parameters
    assert isinstance(wanted, TraceParameters)
    note(context, step, "start")
    context.logger.info("step %s of attempt %d", step, context.attempt)
    stopped = _block(context, wanted)
    note(context, step, "end")
    if stopped:
        return StepResult("stopped", StepOutcome.PARTIAL)
    return StepResult(f"{step} done", details={"by": step})


def _block(context: StepContext, wanted: TraceParameters) -> bool:
    """Wait for the file; return whether it was told to stop instead."""
    if wanted.until is None:
        return False
    for _ in range(int(LONGEST_WAIT_S / POLL_S)):
        try:
            while wanted.asks_always and not context.should_stop():
                pass
            if Path(wanted.until).exists():
                return False
            if wanted.heeds_stop and context.should_stop():
                return True
            Event().wait(POLL_S)
        except BaseException:
            if not wanted.ignores_interrupts:
                raise
    raise StepFailed(f"{wanted.until} did not appear", permanent=True)


def _register(name: str, **how: Any) -> None:
    @minutebook.step(name, parameters=TraceParameters, **how)
    def _(context: StepContext) -> StepResult:
        return run(context, name)


for _name in ("trace_one", "trace_two"):
    _register(_name)
_register("trace_once", repeatable=False)
