"""An attempt that a worker outside Minutebook takes, keeps and ends, by whichever door.

Its operation has one step, which the row shows.
"""

import hashlib
import hmac
from collections.abc import Mapping
from hmac import compare_digest
from secrets import token_hex
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.carriers import Carrier
from models.json_text import is_too_large
from models.operation import SEED, OperationState, StepState, without_seed
from models.store.operations import running
from models.store.operations.admission import KeptBack, Recorded
from models.store.operations.claims import Claim, Claimant, Taking, claim
from models.store.operations.finish import Ended, Ending, end
from models.store.operations.running import Story
from runtime.clock import utc_now
from runtime.sections import AlertSettings

Step = dict[str, Any]
_COLUMNS = {
    "done": "processed",
    "total": "total",
    "message": "message",
    "phase": "phase",
    "blocking": "is_blocking",
}


def begun(name: str, *, repeatable: bool, seed: str | None = None) -> Step:
    """Return a step that begins; `repeatable`: it may begin twice.

    `seed` is a random text that proves who holds it, kept until its end.
    """
    step = {
        "name": name,
        "state": StepState.RUNNING,
        "repeatable": repeatable,
        "started_at": utc_now().isoformat(),
    }
    return step if seed is None else {**step, SEED: seed}


def leased(name: str) -> Step:
    """Return a step that begins for a worker outside Minutebook, which holds it by a lease.

    Several operations may begin with the same step: the leases differ, and none shows the seed.
    """
    return begun(name, repeatable=True, seed=token_hex(32))


def lease_of(id: UUID, attempt: int, step: Mapping[str, Any]) -> str:
    """Return the lease of an attempt: its last part is known to the worker that took it alone."""
    its = f"{id.hex}-{attempt}"
    seed = str(step.get(SEED) or token_hex(32))
    return f"{its}-{hmac.new(seed.encode(), its.encode(), hashlib.sha256).hexdigest()[:32]}"


def is_held_by(step: Mapping[str, Any], seed: str) -> bool:
    """Return whether a step began for the worker that knows this seed."""
    return bool(seed) and compare_digest(seed.encode(), str(step.get(SEED, "")).encode())


def take(
    connection: sa.Connection,
    wanted: Taking,
    carrier: Carrier,
    step: Step,
    alerts: AlertSettings,
    known: Recorded | None = None,
) -> Claim | KeptBack:
    """Start an attempt of that carrier with this step; see `claim` and `Claimant.known`."""
    claimant = Claimant(carrier, lambda *_: columns_of(step), known)
    its = (wanted.id, wanted.attempt, wanted.worker)
    return claim(connection, *its, claimant, alerts=alerts)


def beat(
    connection: sa.Connection,
    its: tuple[UUID, int],
    progress: Mapping[str, Any],
    step: Step | None = None,
) -> bool:
    """Renew the lease of an attempt (id, number), and write progress, and a step that has changed.

    Returns whether a cancel was requested. Raises LeaseLost.
    """
    columns = progress_columns(progress) | ({} if step is None else {"steps": [step]})
    return running.beat(connection, *its, Story(columns))


def finish(
    connection: sa.Connection,
    its: tuple[UUID, int],
    step: Step,
    ending: Ending,
    alerts: AlertSettings,
    said: Mapping[str, Any],
) -> Ended:
    """End an attempt (id, number), with what its worker `said`: `message`, `progress`, `lines`.

    Raises LeaseLost.
    """
    steps = [ended(step, ending, said.get("message"))]
    columns = {**progress_columns(said.get("progress") or {}), "steps": steps}
    story = Story(columns, said.get("lines"))
    return end(connection, *its, ending, story, alerts=alerts)


def columns_of(step: Step) -> dict[str, Any]:
    """Return the columns that the claim of an operation with this step writes."""
    shown = {"steps": [step], "phase": step["name"], "progress": 0.0}
    return {**shown, **dict.fromkeys(("message", "processed", "total", "is_blocking"))}


def ended(step: Step, ending: Ending, message: str | None = None) -> Step:
    """Return a step after its attempt ended."""
    done = {
        OperationState.SUCCESS: StepState.SUCCESS,
        OperationState.PARTIAL: StepState.PARTIAL,
    }
    state = done.get(ending.state, ending.cut_off_step)
    error = ending.error or (ending.reason if state is StepState.FAILED else None)
    said = {key: one for key, one in (("message", message), ("error", error)) if one}
    return {**without_seed(step), "state": state, "finished_at": utc_now().isoformat(), **said}


def progress_columns(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of `done`, `total`, `message`, `phase` and `blocking`, if given.

    A count that no column can hold is left out: it must not cost a task its lease.
    """
    given = {key: one for key, one in progress.items() if not is_too_large(one)}
    values = {_COLUMNS[key]: one for key, one in given.items() if key in _COLUMNS}
    if "is_blocking" in values:
        values["is_blocking"] = bool(values["is_blocking"])
    done, total = given.get("done"), given.get("total")
    if done is not None and total:
        values["progress"] = min(1.0, max(0.0, done / total))
    return values
