"""What an operation's row shows of its only step, which a worker outside Minutebook runs."""

import hashlib
import hmac
from collections.abc import Mapping
from secrets import token_hex
from typing import Any
from uuid import UUID

from models.json_text import is_too_large
from models.operation import OperationState, StepState
from models.store.operations.finish import Ending
from runtime.clock import utc_now

Step = dict[str, Any]
# What proves which worker holds an operation: no list, page or answer shows it.
PROOFS = frozenset({"delivery", "seed"})
_COLUMNS = {"done": "processed", "total": "total", "message": "message", "phase": "phase"}


def begun(name: str, *, repeatable: bool, delivery: str | None = None) -> Step:
    """Return a step that begins; `repeatable`: it may begin twice.

    `delivery` is the random name of the call that claims it, kept until its end.
    """
    step = {
        "name": name,
        "state": StepState.RUNNING,
        "repeatable": repeatable,
        "started_at": utc_now().isoformat(),
    }
    return step if delivery is None else {**step, "delivery": delivery}


def leased(name: str) -> Step:
    """Return a step that begins for a worker outside Minutebook, which holds it by a lease.

    Several operations may begin with the same step: the leases differ, and none shows the seed.
    """
    return {**begun(name, repeatable=True), "seed": token_hex(32)}


def lease_of(id: UUID, attempt: int, step: Mapping[str, Any]) -> str:
    """Return the lease of an attempt: its last part is known to the worker that took it alone."""
    its = f"{id.hex}-{attempt}"
    seed = str(step.get("seed") or token_hex(32))
    return f"{its}-{hmac.new(seed.encode(), its.encode(), hashlib.sha256).hexdigest()[:32]}"


def columns_of(step: Step) -> dict[str, Any]:
    """Return the columns that the claim of an operation with this step writes."""
    shown = {"steps": [step], "phase": step["name"], "progress": 0.0}
    return {**shown, "message": None, "processed": None, "total": None}


def ended(step: Step, ending: Ending, message: str | None = None) -> Step:
    """Return a step after its attempt ended."""
    is_put_back = ending.state is OperationState.PENDING and not ending.is_failure
    state = {
        OperationState.SUCCESS: StepState.SUCCESS,
        OperationState.PARTIAL: StepState.PARTIAL,
    }.get(ending.state, StepState.WAITING if is_put_back else StepState.FAILED)
    error = ending.error or (ending.reason if state is StepState.FAILED else None)
    said = {key: one for key, one in (("message", message), ("error", error)) if one}
    return {**_without_proofs(step), "state": state, "finished_at": utc_now().isoformat(), **said}


def shown(steps: object) -> object:
    """Return the stored steps of an operation as anybody may see them."""
    if not isinstance(steps, list):
        return steps
    return [_without_proofs(one) if isinstance(one, Mapping) else one for one in steps]


def _without_proofs(step: Mapping[str, Any]) -> Step:
    return {key: one for key, one in step.items() if key not in PROOFS}


def progress_columns(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of `done`, `total`, `message` and `phase`, those that are given.

    A count that no column can hold is left out: it must not cost a task its lease.
    """
    given = {key: one for key, one in progress.items() if not is_too_large(one)}
    values = {_COLUMNS[key]: one for key, one in given.items() if key in _COLUMNS}
    done, total = given.get("done"), given.get("total")
    if done is not None and total:
        values["progress"] = min(1.0, max(0.0, done / total))
    return values
