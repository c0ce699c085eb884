"""Follow what was requested until it has ended, here or on another server."""

from collections import Counter
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
from services.runs.many import FIRST_LEFT_OUT, Bulk, LeftOut, Selection, by_action

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


def all_of(door: Door, verb: Callable[..., Bulk], selection: Selection, **options: bool) -> Bulk:
    """Return what was done to all that filters admit, by as many requests as it takes."""
    done: list[Bulk] = []
    cursor: str | None = selection.cursor
    while not done or cursor is not None:
        asked = selection.model_copy(update={"cursor": cursor})
        done.append(door.ask(verb, asked, **options))
        cursor = done[-1].next
    return done[0] if len(done) == 1 else _together(done)


def _together(done: Sequence[Bulk]) -> Bulk:
    """Return the answers of several requests as one."""
    counts: Counter[tuple[str, UUID, str]] = Counter()
    left_out: dict[str, LeftOut] = {}
    for one in (one for answer in done for one in answer.actions):
        counts[one.app, one.uid, one.name] += one.count
    for out in (out for answer in done for out in answer.left_out):
        before = left_out.get(out.why, LeftOut(why=out.why, count=0, first=()))
        first = (before.first + out.first)[:FIRST_LEFT_OUT]
        left_out[out.why] = LeftOut(why=out.why, count=before.count + out.count, first=first)
    return done[0].model_copy(
        update={
            "count": sum(one.count for one in done),
            "actions": by_action(counts),
            "ids": tuple(id for one in done for id in one.ids),
            "left_out": tuple(left_out.values()),
            "next": None,
            "unsent": next((one.unsent for one in done if one.unsent), None),
        }
    )
