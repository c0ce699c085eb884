"""Send again what one of our queues lost, and nothing that still waits in it."""

from collections.abc import Callable, Sequence
from functools import partial

import sqlalchemy as sa

from broker.names import QUICK
from broker.probe import depths
from models.store.operations import reserve
from models.store.operations.reserve import Queued
from models.worker_kinds import OURS
from runtime.database import reading
from runtime.logs.events import EventLog

logger = EventLog("minutebook.broker")

# A claim waits for no more.
BATCH = 2_000


def look(engine: sa.Engine, queued: Sequence[Queued], read: frozenset[str]) -> int:
    """Release what was queued 30 s ago if its queue is empty and read; return how many.

    What still waits in a queue is not sent again. Raises BrokerUnavailable, also if nothing is
    queued.
    """
    found = depths({QUICK, *(one.queue for one in queued)})
    for one in queued:
        depth = found.get(one.queue)
        if depth and one.waits(depth):
            _put_off(engine, one.queue, depth)
    lost = [one.queue for one in queued if one.is_lost(found.get(one.queue), read)]
    count = sum(_in_batches(engine, partial(reserve.release_lost, queue=one)) for one in lost)
    if count:
        names = ", ".join(map(OURS.listed, lost))
        logger.warning(
            "broker_lost_messages",
            "queues {queues} lost their messages: {operations} operations are sent again",
            names,
            count,
        )
    return count


def _put_off(engine: sa.Engine, queue: str, depth: int) -> None:
    with reading(engine) as connection:
        since = reserve.oldest_waiting(connection, queue, depth)
    _in_batches(engine, partial(reserve.put_off, queue=queue, since=since))


def _in_batches(engine: sa.Engine, act: Callable[..., int]) -> int:
    """Repeat `act`, each time in a short transaction of its own, until nothing is left."""
    count, changed = 0, BATCH
    while changed == BATCH:
        with engine.begin() as connection:
            changed = act(connection, limit=BATCH)
        count += changed
    return count
