"""Send again what one of our queues lost, and nothing that still waits in it."""

import sqlalchemy as sa

from broker.depths import depths
from broker.names import QUICK
from models.carriers import OURS
from models.store import presence
from models.store.operations import outbox
from runtime.database import reading
from runtime.logs.events import EventLog

logger = EventLog("minutebook.broker")


def look(engine: sa.Engine) -> int:
    """Release what was queued 30 s ago if its queue is empty and read; return how many.

    While a queue holds as many messages as operations wait in it, none of these is sent again.
    Raises BrokerUnavailable, also if nothing is queued.
    """
    with reading(engine) as connection:
        queued = outbox.queued(connection)
        read = presence.listened_queues(connection, presence.GONE) if queued else frozenset()
    found = depths({QUICK, *(one.queue for one in queued)})
    lost = [one for one in queued if one.is_lost(found.get(one.queue), read)]
    waiting = [one for one in queued if one.waits(found.get(one.queue))]
    if not lost and not waiting:
        return 0
    with engine.begin() as connection:
        count = sum(outbox.release_lost(connection, one.queue) for one in lost)
        for one in waiting:
            outbox.put_off(connection, one.queue)
    if count:
        names = ", ".join(OURS.listed(one.queue) for one in lost)
        logger.warning(
            "broker_lost_messages",
            "queues {queues} lost their messages: {operations} operations are sent again",
            names,
            count,
        )
    return count
