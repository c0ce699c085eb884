"""Runs that another scheduler starts, and that `minutebook exec` puts on record."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import token_hex
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import NOTHING_PLANNED, Plan
from models.errors import NotFound
from models.fingerprint import fingerprint, str_to_uuid
from models.operation import Cause, CausedBy, OperationState, StepState
from models.sql import read_clock
from models.store import operations
from models.store.actions import cursors
from models.store.operations import one_step, running
from models.store.operations.claims import start_foreign
from models.store.operations.finish import Ending, end
from models.store.operations.running import Story
from runtime.clock import utc_now
from scheduler.changes.change import create_all
from scheduler.changes.revisions import action_ref
from scheduler.record import operation_row
from views.actions.whole import uid_of
from views.installation import Installation

STEP = OWNER = "exec"
# An action needs a rule; another scheduler starts this one.
NEVER = "2199-12-31T00:00:00Z"


@dataclass
class Recorded:
    """A run on record: an operation that this process holds."""

    installation: Installation
    id: UUID
    step: one_step.Step

    def beat(self) -> bool:
        """Renew the lease; return whether a cancel was requested. Raises LeaseLost."""
        with self.installation.engine.begin() as connection:
            return running.beat(connection, self.id, 1)

    def end(self, code: int, duration_s: float, *, was_cancelled: bool) -> None:
        """Record how the program ended. Raises LeaseLost."""
        error = None if code == 0 else how_ended(code)
        details = {"exit_code": code, "duration_s": round(duration_s, 3)}
        state = StepState.FAILED if code else StepState.SUCCESS
        story = {**self.step, "state": state, "finished_at": utc_now().isoformat()}
        story |= {"details": details} | ({"error": error} if error else {})
        ending = Ending(OperationState.SUCCESS, result={STEP: details})
        if code and was_cancelled:
            ending = replace(ending, state=OperationState.CANCELLED, reason="cancelled")
        elif code:
            ending = Ending(OperationState.FAILED, error=error, is_failure=True)
        alerts = self.installation.settings.alert
        with self.installation.engine.begin() as connection:
            end(connection, self.id, 1, ending, Story({"steps": [story]}), alerts=alerts)


def how_ended(code: int) -> str:
    """Return an exit code in words; a negative one is a signal."""
    return f"exit code {code}" if code > 0 else f"ended by signal {-code}"


def begin(
    installation: Installation, name: str, program: Sequence[str], folder: str, began_at: datetime
) -> Recorded:
    """Record a run of the action `name`; a new name makes a paused action."""
    try:
        uid = uid_of(installation, name)
    except NotFound:
        _make(installation, name, program, folder)
        uid = uid_of(installation, name)
    worker = f"{STEP}@{socket.gethostname()}:{os.getpid()}"
    by = CausedBy(Cause.MANUAL, f"Run by {installation.actor} with `minutebook exec`")
    # If this process is lost, no worker may begin the program again.
    step = {**one_step.begun(STEP, repeatable=False), "started_at": began_at.isoformat()}
    with installation.engine.begin() as connection:
        row = cursors.lock(connection, uid)
        now = read_clock(connection).replace(microsecond=0)
        plan = row.plan if isinstance(row.plan, Plan) else NOTHING_PLANNED
        id = str_to_uuid(fingerprint(uid, now, manual=token_hex(8)))
        operation = operation_row(action_ref(row), plan, id, now, by)
        # The other scheduler decides about overlaps.
        operations.record(connection, [operation | {"overlap_key": None}])
        start_foreign(connection, id, worker, [step])
    return Recorded(installation, id, step)


def _make(installation: Installation, name: str, program: Sequence[str], folder: str) -> None:
    place = {"cwd": folder} if folder else {}
    document = {
        "name": name,
        "active": False,
        "owner": OWNER,
        "description": "Another scheduler starts it; `minutebook exec` records its runs.",
        "operations": {"command": {"run": list(program), **place}},
        "when": {"due_date": NEVER},
    }
    # A worker checks what it runs, if the action is ever resumed.
    author = replace(installation.author, commands=None)
    try:
        create_all(installation.engine, [document], author)
    except sa.exc.IntegrityError:
        # Another first run has made it meanwhile.
        return
