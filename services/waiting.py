"""Follow what was requested until it has ended, here or on another server."""

from collections.abc import Callable, Collection, Iterator, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from models.errors import NotFound, Refused
from models.operation import ENDED, WENT_WELL, OperationState
from runtime.clock import monotonic, wait_for
from services import operations
from services.door import Door
from services.operations import LogLine, Operation
from services.runs import Outcomes, Ran, Refusal, RequestedRun

if TYPE_CHECKING:
    from services.backfills import StartedBackfill

LOOK_S = 0.5

Many = TypeVar("Many", bound=Outcomes[Any])


def each(ids: Sequence[str], act: Callable[[str], RequestedRun]) -> tuple[Any, ...]:
    """Return the result of `act` for each id; a refused one does not stop the others."""
    made: list[RequestedRun | Refusal] = []
    for text in dict.fromkeys(ids):
        try:
            made.append(act(text))
        except (NotFound, Refused) as error:
            made.append(Refusal(id=text, refused=str(error)))
    return tuple(made)


def awaited(door: Door, ran: Ran, timeout_s: float | None) -> Ran:
    """Return an operation when it has ended, or after `timeout_s`; at once without a time-out."""
    if timeout_s is None:
        return ran
    end = _end_of(door, ran.id, timeout_s, WENT_WELL)
    error = door.ask(operations.show, str(ran.id)).error
    return ran.model_copy(update={**end, "error": error})


def all_awaited(
    door: Door,
    made: Many,
    timeout_s: float | None,
    good: Collection[OperationState] = WENT_WELL,
) -> Many:
    """Return the results with the final states of the operations; `good` are the states wanted."""
    if timeout_s is None:
        return made
    end = monotonic() + timeout_s

    def ended(one: Any) -> Any:
        if not isinstance(one, RequestedRun):
            return one
        left_s = max(0.0, end - monotonic())
        return one.model_copy(update=_end_of(door, one.id, left_s, good))

    return type(made)(tuple(ended(one) for one in made.root))


def backfill_awaited(
    door: Door, started: "StartedBackfill", timeout_s: float | None
) -> "StartedBackfill":
    """Return a backfill when it and its operations have ended, or else after `timeout_s`."""
    if timeout_s is None:
        return started
    from services import backfills

    seen = started

    def is_over() -> bool:
        nonlocal seen
        seen = door.ask(backfills.show, started.id)
        return seen.is_over

    wait_for(is_over, timeout_s, poll_s=door.poll_s)
    return seen.model_copy(update={"is_awaited": True, "unsent": started.unsent})


def _end_of(
    door: Door, id: UUID, timeout_s: float, good: Collection[OperationState]
) -> dict[str, Any]:
    """Return how an operation stands when it has ended, or else after `timeout_s`."""
    state = ""

    def has_ended() -> bool:
        nonlocal state
        state = door.ask(operations.state, str(id)).state
        return state in ENDED

    timed_out = not wait_for(has_ended, timeout_s, poll_s=door.poll_s)
    return {"state": state, "succeeded": state in good, "timed_out": timed_out}


def changes(door: Door, id: str) -> Iterator[Operation]:
    """Yield an operation as it is, at each change that a person would notice, and as it ended."""
    before: tuple[object, ...] = ()
    for one in until_ended(door, id):
        now = (one.state, one.attempt, one.reason, one.phase, one.message, one.processed, one.total)
        if now != before:
            yield one
        before = now


def until_ended(door: Door, id: str) -> Iterator[Operation]:
    """Yield an operation twice a second; ends with the operation, which is yielded last."""
    pause = Event()
    while True:
        one = door.ask(operations.show, id)
        yield one
        if one.state in ENDED:
            return
        pause.wait(max(LOOK_S, door.poll_s))


def new_lines(door: Door, id: str) -> Iterator[Sequence[LogLine]]:
    """Yield the log lines of an operation as they come, until it ends."""
    seen: Sequence[LogLine] = ()
    for _ in until_ended(door, id):
        log = door.ask(operations.log, id).root
        yield _added(seen, log)
        seen = log


def _added(before: Sequence[LogLine], now: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines of `now` that came after `before`; a log keeps its last lines only."""
    for gone in range(len(before) + 1):
        kept = before[gone:]
        if tuple(now[: len(kept)]) == tuple(kept):
            return now[len(kept) :]
    return now
