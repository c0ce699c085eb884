"""Record at once what is due by the end of an operation, when that has been committed.

The transaction of an end writes its event, and this one records what is due by it: a dependant
that cannot be recorded keeps no end from being written. If this process dies in between, the next
tick decides the same event; ids prevent duplicates.

No deadlock is possible: the end's transaction is over. This one takes the cursors of the
dependants, as a tick does, passing over those that a tick or a change has locked, which the next
tick decides. It locks no row of an operation, and inserts new ones.
"""

from functools import partial

import sqlalchemy as sa

from broker import sending
from models.store.operations.end import EndResult
from models.store.operations.ends import Raised
from models.values.delays import rounded_up
from runtime.database import not_usable
from runtime.logs.events import EventLog
from scheduler.events.tick import EventTick
from scheduler.record import Recorded

logger = EventLog("minutebook.tick")


def send_ended(engine: sa.Engine, ended: EndResult | None) -> None:
    """Send what an end released, its notices, and what is due by it without a delay.

    Never raises: the next tick does the rest.
    """
    if ended is not None and ended.raised is not None:
        _follow(engine, ended.raised)
    sending.send_ended(engine, ended)


def _follow(engine: sa.Engine, end: Raised) -> None:
    # The occurrence of an event is its instant, rounded up.
    events = EventTick(engine, rounded_up(end.at), lambda _: False, partial(_send, engine))
    try:
        events.follow(end.action_uid)
    except Exception as error:  # the end is recorded, whatever depends on it
        logger.warning(
            "dependants_left_to_tick",
            "the next tick records what is due by an end of action {action}: {error}",
            end.action_uid,
            not_usable(error) or repr(error),
        )


def _send(engine: sa.Engine, recorded: Recorded) -> None:
    sending.send_reserved(engine, sending.sendable_here(recorded.messages))
