"""An attempt that a worker outside Minutebook takes, keeps and ends, by whichever door.

Its operation has one step, which the row shows.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import NotFound
from models.json_text import is_too_large
from models.operation import ENDED, AttemptKey, OperationState, StepState
from models.store.operations import heartbeat
from models.store.operations.end import EndResult, Outcome, end
from models.store.operations.heartbeat import ATTEMPT, ProgressUpdate, fence
from models.store.operations.start_checks import NotStarted, OperationFacts
from models.store.operations.take import Claim, ClaimRequest, claim
from models.store.operations.transitions import fenced, move
from models.tables import action_state, attempts, operations
from models.worker_kinds import WorkerKind
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


def begun(name: str, *, repeatable: bool) -> Step:
    """Return a step that begins; `repeatable`: it may begin twice."""
    return {
        "name": name,
        "state": StepState.RUNNING,
        "repeatable": repeatable,
        "started_at": utc_now().isoformat(),
    }


def lease_of(key: AttemptKey) -> str:
    """Return what a worker outside names when it reports."""
    return f"{key.id.hex}-{key.attempt}-{key.secret}"


def key_of(lease: str) -> AttemptKey:
    """Return the key of the attempt that was handed out under a lease; raises NotFound."""
    id, attempt, secret, *_ = [*lease.split("-", 2), "", ""]
    try:
        return AttemptKey(UUID(hex=id), int(attempt), secret)
    except ValueError:
        raise NotFound("nothing was handed out under that lease") from None


def take(
    connection: sa.Connection,
    wanted: ClaimRequest,
    worker_kind: WorkerKind,
    step: Step,
    alerts: AlertSettings,
    known: OperationFacts | None = None,
) -> Claim | NotStarted:
    """Start an attempt of that kind of worker with this step; see `claim`."""
    found = claim(connection, wanted, alerts, worker_kind, lambda *_: columns_of(step), known)
    if isinstance(found, Claim) and not found.is_running:
        return replace(found, steps=[step])
    return found


def take_up(connection: sa.Connection, operation_id: UUID, attempt: int) -> bool:
    """Make a handed-over operation claimable by a worker that follows; False if it was not.

    It no longer counts as a run until it ends. Called in the transaction of the claim.
    """
    taken = move(
        OperationState.QUEUED,
        fenced(operation_id, attempt),
        since={OperationState.HANDED_OVER},
        reason=None,
    ).returning(operations.c.action_uid, operations.c.subject)
    row = connection.execute(taken).one_or_none()
    if row is None:
        return False
    # In the order that all writers keep: a subject's row before its action's.
    for subject in dict.fromkeys((row.subject or "", "")):
        its_own = (action_state.c.action_uid == row.action_uid, action_state.c.subject == subject)
        counted = sa.update(action_state).where(*its_own, action_state.c.run_number > 0)
        connection.execute(counted.values(run_number=action_state.c.run_number - 1))
    return True


def beat(connection: sa.Connection, key: AttemptKey, progress: Mapping[str, Any]) -> bool:
    """Renew the lease of an attempt, and write progress; return whether a cancel was requested.

    Raises LeaseLost.
    """
    return heartbeat.beat(connection, key, ProgressUpdate(progress_columns(progress)))


def finish(
    connection: sa.Connection,
    key: AttemptKey,
    step: Step,
    ending: Outcome,
    alerts: AlertSettings,
    said: Mapping[str, Any],
) -> EndResult:
    """End an attempt, with what its worker `said`: `message`, `progress`, `lines`.

    Raises LeaseLost.
    """
    steps = [ended(step, ending, said.get("message"))]
    columns = {**progress_columns(said.get("progress") or {}), "steps": steps}
    story = ProgressUpdate(columns, said.get("lines"))
    return end(connection, key, ending, story, alerts=alerts)


def has_ended(connection: sa.Connection, key: AttemptKey) -> bool:
    """Return whether the worker that holds this key has ended its attempt: it reports again."""
    its_last = sa.select(operations.c.id).where(ATTEMPT, operations.c.state.in_(ENDED))
    earlier = sa.select(attempts.c.operation_id).where(
        attempts.c.operation_id == sa.bindparam("its_id"),
        attempts.c.attempt == sa.bindparam("its_attempt"),
        attempts.c.secret == sa.bindparam("its_secret"),
    )
    found = connection.execute(its_last.union_all(earlier), fence(key)).first()
    return bool(key.secret) and found is not None


def columns_of(step: Step) -> dict[str, Any]:
    """Return the columns that the claim of an operation with this step writes."""
    shown = {"steps": [step], "phase": step["name"], "progress": 0.0}
    return {**shown, **dict.fromkeys(("message", "processed", "total", "is_blocking"))}


def ended(step: Step, ending: Outcome, message: str | None = None) -> Step:
    """Return a step after its attempt ended."""
    done = {
        OperationState.SUCCESS: StepState.SUCCESS,
        OperationState.PARTIAL: StepState.PARTIAL,
    }
    state = done.get(ending.state, ending.cut_off_step)
    error = ending.error or (ending.reason if state is StepState.FAILED else None)
    said = {key: one for key, one in (("message", message), ("error", error)) if one}
    return {**step, "state": state, "finished_at": utc_now().isoformat(), **said}


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
