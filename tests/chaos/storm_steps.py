"""Steps of the storm: each appends its start and end to the log in MINUTEBOOK_STORM."""

import json
import os
from pathlib import Path
from threading import Event
from typing import Any

from pydantic import BaseModel, ConfigDict

import minutebook
from minutebook import StepContext, StepFailed, StepOutcome, StepResult
from runtime.clock import utc_now

POLL_S = 0.05
LOG = "MINUTEBOOK_STORM"
# A file: once it exists, steps take no time.
CALM = "MINUTEBOOK_STORM_CALM"


class StormParameters(BaseModel):
    """The behaviour of a step of the storm between its start and its end."""

    model_config = ConfigDict(extra="forbid")

    ms: int = 0
    # Fails in its first attempts.
    fail: int = 0
    permanent: bool = False
    ignores_interrupts: bool = False
    heeds_stop: bool = False


def _note(context: StepContext, step: str, what: str, *, repeatable: bool) -> None:
    line = {
        "operation": str(context.operation_id),
        "attempt": context.attempt,
        "step": step,
        "repeatable": repeatable,
        "pid": os.getpid(),
        "at": utc_now().timestamp(),
        "what": what,
    }
    file = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
    finally:
        os.close(file)


def _spend(context: StepContext, wanted: StormParameters) -> bool:
    """Wait, except in the calm; return whether a stop was requested."""
    polls = wanted.ms // int(POLL_S * 1000)
    while polls > 0 and not Path(os.environ[CALM]).exists():
        polls -= 1
        try:
            if wanted.heeds_stop and context.should_stop():
                return True
            Event().wait(POLL_S)
        except BaseException:
            if not wanted.ignores_interrupts:
                raise
    return False


def _run(context: StepContext, step: str, *, repeatable: bool) -> StepResult:
    wanted = context.parameters
    assert isinstance(wanted, StormParameters)
    _note(context, step, "start", repeatable=repeatable)
    if _spend(context, wanted):
        _note(context, step, "stopped", repeatable=repeatable)
        return StepResult("stopped", StepOutcome.PARTIAL)
    if context.attempt <= wanted.fail:
        _note(context, step, "fail", repeatable=repeatable)
        raise StepFailed(f"attempt {context.attempt} fails", permanent=wanted.permanent)
    _note(context, step, "end", repeatable=repeatable)
    return StepResult(f"{step} done")


def _register(name: str, **how: Any) -> None:
    repeatable = how.get("repeatable", True)

    @minutebook.step(name, parameters=StormParameters, **how)
    def _(context: StepContext) -> StepResult:
        return _run(context, name, repeatable=repeatable)


_register("storm_first")
_register("storm_second")
_register("storm_once", repeatable=False)
_register("storm_heavy", heavy=True)
