"""Follow what was requested until it has ended, here or on another server."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any
from uuid import UUID

from models.operation import ENDED, WENT_WELL, OperationState
from runtime.clock import monotonic, wait_for
from services import operations
from services.backend import Backend
from services.operations import LogLine, Operation
from services.runs import NotRun, Ran, RanAll, RanOfAll, stopped_waiting
from services.runs.many import Bulk

if TYPE_CHECKING:
    from services.backfills import StartedBackfill

LOOK_S = 0.5


def awaited(backend: Backend, ran: Ran, timeout_s: float | None) -> Ran:
    """Return an operation when it has ended, or after `timeout_s`; at once without a time-out."""
    if timeout_s is None:
        return ran
    end = _end_of(backend, ran.id, timeout_s, WENT_WELL)
    error = backend.call(operations.show, str(ran.id)).error
    return ran.model_copy(update={**end, "error": error})


def all_awaited(backend: Backend, made: RanAll, timeout_s: float | None) -> RanAll:
    """Return the results with the final states of the operations."""
    if timeout_s is None:
        return made
    ends = _ends_of(backend, [one.id for one in made.root if isinstance(one, RanOfAll)], timeout_s)

    def ended(one: RanOfAll | NotRun) -> RanOfAll | NotRun:
        return one.model_copy(update=ends[one.id]) if isinstance(one, RanOfAll) else one

    return RanAll(tuple(map(ended, made.root)))


def bulk_awaited(
    backend: Backend, done: Bulk, timeout_s: float | None, good: Collection[OperationState]
) -> Bulk:
    """Return what was done to many operations when they have ended; `good` is as it should be."""
    if timeout_s is None or done.dry_run:
        return done
    ends = _ends_of(backend, done.ids, timeout_s, good)
    first = (one.model_copy(update={"state": ends[one.id]["state"]}) for one in done.first)
    late = (stopped_waiting(id, end["state"]) for id, end in ends.items() if end["timed_out"])
    succeeded = all(end["succeeded"] for end in ends.values())
    update = {"first": tuple(first), "late": tuple(late), "succeeded": succeeded}
    return done.model_copy(update=update)


def backfill_awaited(
    backend: Backend, started: "StartedBackfill", timeout_s: float | None
) -> "StartedBackfill":
    """Return a backfill when it and its operations have ended, or else after `timeout_s`."""
    if timeout_s is None:
        return started
    from services import backfills

    seen = started

    def is_over() -> bool:
        nonlocal seen
        seen = backend.call(backfills.show, started.id)
        return seen.is_over

    wait_for(is_over, timeout_s, poll_s=backend.poll_s)
    return seen.model_copy(update={"is_awaited": True, "unsent": started.unsent})


def _ends_of(
    backend: Backend,
    ids: Iterable[UUID],
    timeout_s: float,
    good: Collection[OperationState] = WENT_WELL,
) -> dict[UUID, dict[str, Any]]:
    """Return how operations stand when all have ended, or else after `timeout_s`."""
    end = monotonic() + timeout_s
    return {id: _end_of(backend, id, max(0.0, end - monotonic()), good) for id in ids}


def _end_of(
    backend: Backend, id: UUID, timeout_s: float, good: Collection[OperationState]
) -> dict[str, Any]:
    """Return how an operation stands when it has ended, or else after `timeout_s`."""
    state = ""

    def has_ended() -> bool:
        nonlocal state
        state = backend.call(operations.state, str(id)).state
        return state in ENDED

    timed_out = not wait_for(has_ended, timeout_s, poll_s=backend.poll_s)
    return {"state": state, "succeeded": state in good, "timed_out": timed_out}


def changes(backend: Backend, id: str) -> Iterator[Operation]:
    """Yield an operation as it is, at each change that a person would notice, and as it ended."""
    before: tuple[object, ...] = ()
    for one in until_ended(backend, id):
        now = (one.state, one.attempt, one.reason, one.phase, one.message, one.processed, one.total)
        if now != before:
            yield one
        before = now


def until_ended(backend: Backend, id: str) -> Iterator[Operation]:
    """Yield an operation twice a second; ends with the operation, which is yielded last."""
    pause = Event()
    while True:
        one = backend.call(operations.show, id)
        yield one
        if one.state in ENDED:
            return
        pause.wait(max(LOOK_S, backend.poll_s))


def new_lines(backend: Backend, id: str) -> Iterator[Sequence[LogLine]]:
    """Yield the log lines of an operation as they come, until it ends."""
    seen: Sequence[LogLine] = ()
    for _ in until_ended(backend, id):
        log = backend.call(operations.log, id).root
        yield _added(seen, log)
        seen = log


def _added(before: Sequence[LogLine], now: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines of `now` that came after `before`; a log keeps its last lines only."""
    for gone in range(len(before) + 1):
        kept = before[gone:]
        if tuple(now[: len(kept)]) == tuple(kept):
            return now[len(kept) :]
    return now
