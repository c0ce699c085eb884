"""Repair unsent operations, lost messages, expired leases and stranded waits."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar
from uuid import UUID

import sqlalchemy as sa

from broker.names import QUICK
from broker.probe import depths
from broker.sending import Sent, send_backfills, send_notices, send_reserved
from models.operation import OperationState
from models.sql import read_clock
from models.store import notices as outbox
from models.store.notices import missed, overdue
from models.store.operations import backfills, external_send, put_back, reserve
from models.store.operations.reserve import Queued, reserve_sendable
from models.store.tick_work import Repairs
from models.worker_kinds import OURS
from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY, reading
from runtime.logs.events import EventLog
from runtime.sections import AlertSettings

logger = EventLog("minutebook.sweep")

T = TypeVar("T")
# The name of a log event, and its text.
Event = tuple[str, str]
LOST = ("operation_lost", "operation {operation} lost its worker: now {state}")
IN_DOUBT = ("operation_in_doubt", "operation {operation} was left in doubt: now {state}")

BATCH = 500
# What one transaction of released or put off messages changes: a claim waits for no more.
MOST_CLAIMED = 2_000
# What one transaction reserves for sending.
MOST_RESERVED = 1_000


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did."""

    sent: int = 0
    lost: int = 0
    released: int = 0
    notices: int = 0
    overdue: int = 0
    error: str | None = None
    # The error of the Celery application's own broker.
    application_error: str | None = None


class Sweeper:
    """A sweep that takes back no lease that could be healthy.

    After the daemon's start, a database error or a pause of its loop, the workers may have been
    cut off as well: a silent worker counts as lost only after a whole lease.
    """

    def __init__(self, lease: timedelta, alerts: AlertSettings) -> None:
        self.lease = lease
        self.alerts = alerts
        self.overdue = alerts.overdue
        self._trusted_from = 0.0
        self.distrust()

    def distrust(self) -> None:
        """Take back no lease for one lease from now."""
        self._trusted_from = monotonic() + self.lease.total_seconds()

    def sweep(
        self, engine: sa.Engine, found: Repairs, *, send: bool, overtook: bool = False
    ) -> SweepReport:
        """Take back lost operations, release stranded ones, then send what is sendable.

        Of these parts only those for which work was found, or made by an earlier part: notices come
        last. Unless `send`, our own broker gets nothing. `overtook`: newer operations replaced
        unstarted ones.
        """
        lost = released = doubtful = late = 0
        sent = notices = begun = Sent(0)
        if found.stale and monotonic() >= self._trusted_from:
            lost = _isolated(0, self._take_back, engine)
        if found.stranded:
            released = _isolated(0, _in_one, engine, put_back.release_stranded)
        if found.doubtful:
            doubtful = _isolated(0, self._decide_doubtful, engine)
        is_sendable = found.sendable or lost or released or doubtful
        if is_sendable:
            sent = _isolated(sent, dispatch_ready, engine, send)
        is_judged = found.overdue or overtook or found.missed
        if is_judged:
            late = _isolated(0, self._judge, engine, overtook)
        if send and sent.error is None and (found.notices or is_sendable or is_judged):
            notices = _isolated(notices, dispatch_notices, engine)
        error = sent.error or notices.error
        if send and error is None and found.backfills:
            begun = _isolated(begun, dispatch_backfills, engine)
        counts = (sent.count, lost, released, notices.count, late)
        return SweepReport(*counts, error or begun.error, sent.application_error)

    def _take_back(self, engine: sa.Engine) -> int:
        lost = partial(put_back.take_back_lost, lease=self.lease, limit=BATCH, alerts=self.alerts)
        return _in_batches(engine, lost, LOST)

    def _decide_doubtful(self, engine: sa.Engine) -> int:
        """Decide operations whose sender fell silent while sending to another application."""
        doubtful = partial(external_send.decide_doubtful, limit=BATCH, alerts=self.alerts)
        return _in_batches(engine, doubtful, IN_DOUBT)

    def _judge(self, engine: sa.Engine, overtook: bool) -> int:
        """Tell what was missed; find and return how many actions are overdue."""
        with engine.begin() as connection:
            missed.tell(connection, self.alerts)
            alerted = overdue.alert(connection, self.alerts, BATCH, overtook=overtook)
        for name, reason in alerted:
            logger.warning("action_overdue", "action {action!r} is overdue: {reason}", name, reason)
        return len(alerted)


def _in_batches(
    engine: sa.Engine, act: Callable[[sa.Connection], list[tuple[UUID, str]]], event: Event
) -> int:
    count = 0
    while True:
        with engine.begin() as connection:
            moved = act(connection)
        for operation, state in moved:
            level = logging.ERROR if state == OperationState.FAILED else logging.WARNING
            logger.log(level, *event, operation, state)
        count += len(moved)
        if len(moved) < BATCH:
            return count


def _isolated(nothing: T, part: Callable[..., T], *given: object) -> T:
    """Return how much a part of the sweep did, `nothing` if it failed: the other parts go on."""
    try:
        return part(*given)
    except DATABASE_AWAY:
        raise
    except Exception:  # an unforeseen row
        logger.exception("sweep_failed", "a part of this sweep failed; the next sweep tries again")
        return nothing


def _in_one(engine: sa.Engine, act: Callable[[sa.Connection], int]) -> int:
    """Return the result of `act` in a transaction of its own."""
    with engine.begin() as connection:
        return act(connection)


def dispatch_ready(engine: sa.Engine, to_ours: bool = True) -> Sent:
    """Reserve and send all sendable operations; stop at the first failed flush.

    Unless `to_ours`, those of our own workers wait for a later tick.
    """
    error = None if to_ours else "unavailable a moment ago"
    ready = partial(reserve_sendable, to_ours=to_ours)
    return _dispatch(engine, ready, partial(send_reserved, error=error), error)


def dispatch_backfills(engine: sa.Engine) -> Sent:
    """Reserve and send backfills that no worker has recorded; stop at the first failed flush."""
    return _dispatch(engine, backfills.reserve_sendable, send_backfills)


def dispatch_notices(engine: sa.Engine) -> Sent:
    """Reserve and send all sendable notices; stop at the first failed flush."""
    return _dispatch(engine, outbox.reserve, send_notices)


def _dispatch(
    engine: sa.Engine,
    take: Callable[[sa.Connection, int, datetime], Sequence[T]],
    send: Callable[[sa.Engine, Sequence[T]], Sent],
    known: str | None = None,
) -> Sent:
    """Send what is sendable at the start; what a worker puts back meanwhile waits for a tick.

    `known` is the error that our broker has already.
    """
    count = 0
    application_error: str | None = None
    begun_at: datetime | None = None
    while True:
        with engine.begin() as connection:
            now = read_clock(connection)
            begun_at = begun_at or now
            # If the clock went back, what was just sent would be sendable again.
            reserved = take(connection, MOST_RESERVED, begun_at) if now >= begun_at else ()
        if not reserved:
            return Sent(count, None, application_error)
        sent = send(engine, reserved)
        count += sent.count
        application_error = sent.application_error or application_error
        if sent.error != known:
            return Sent(count, sent.error, application_error)
        if len(reserved) < MOST_RESERVED:
            return Sent(count, None, application_error)


def release_lost(engine: sa.Engine, queued: Sequence[Queued], read: frozenset[str]) -> int:
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
    count = sum(_counted(engine, partial(reserve.release_lost, queue=one)) for one in lost)
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
    _counted(engine, partial(reserve.put_off, queue=queue, since=since))


def _counted(engine: sa.Engine, act: Callable[..., int]) -> int:
    """Repeat `act`, each time in a short transaction of its own, until nothing is left."""
    count, changed = 0, MOST_CLAIMED
    while changed == MOST_CLAIMED:
        with engine.begin() as connection:
            changed = act(connection, limit=MOST_CLAIMED)
        count += changed
    return count
