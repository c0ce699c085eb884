"""The one read of a tick: its clock, the release, what is due, and what has to be repaired."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from models.column_types import UTCDateTime
from models.notices import BROKERS, FindingKind
from models.sql import database_now
from models.store import workers
from models.store.conditions import (
    IS_ACTIVE_BACKFILL,
    IS_OWED,
    IS_RUNNING,
    IS_UNSTARTED,
    NEVER_STARTED,
    PUT_BACK_FROM,
)
from models.store.key_values import CELERY_QUEUES, KERNEL, LAST_NOW, TZ_RELEASE, value_query
from models.store.notices.findings import IS_OPEN
from models.store.operations import reserve
from models.store.operations.external_send import IN_DOUBT
from models.store.operations.put_back import STRANDED
from models.store.operations.reserve import READY, Queued
from models.store.ticks import CLOCK_WAS_WRONG
from models.stored import instant_in
from models.tables import (
    SENDABLE,
    action_cursor,
    action_ends,
    actions,
    attempts,
    backfills,
    findings,
    notices,
    operations,
    small_apps,
)

# How many of those that wait longest are looked at.
MOST_READ = 20


class Repairs(NamedTuple):
    """The parts of a sweep: those for which a tick found work."""

    stale: bool
    overdue: bool
    notices: bool
    backfills: bool
    missed: bool
    stranded: bool = False
    doubtful: bool = False
    sendable: bool = False


EVERYTHING = Repairs(*[True] * len(Repairs._fields))


@dataclass(frozen=True, slots=True)
class Found:
    """A tick's `now`, the last one's, and its work; `has_events` if event actions exist."""

    now: datetime
    last_now: datetime | None
    # How far the newest of what our clock wrote lies ahead of it; negative otherwise.
    ahead: timedelta
    has_due: bool
    has_events: bool
    # The stored kernel and tz release.
    release: tuple[str | None, str | None]
    repairs: Repairs
    # What waits in our queues, and the queues that live workers read.
    queued: Sequence[Queued] = ()
    listened: frozenset[str] = frozenset()
    # By how many seconds the clock went back since the last tick, and whether no daemon ticked.
    set_back_s: float = 0.0
    was_down: bool = False
    # The findings that are open of brokers that did not answer.
    brokers_down: frozenset[str] = frozenset()
    # The stored text of `celery_queues`.
    celery_queues: str | None = None

    @property
    def gap(self) -> timedelta:
        """How long the last tick is ago."""
        return timedelta(0) if self.last_now is None else self.now - self.last_now


def _first(column: sa.ColumnElement[Any], *where: Any) -> Any:
    """Return the least value of a column: the beginning of an index."""
    return sa.select(sa.func.min(column)).where(*where).scalar_subquery()


def _last(column: sa.ColumnElement[Any], *where: Any) -> Any:
    """Return the greatest value of a column: the end of an index."""
    return sa.select(sa.func.max(column)).where(*where).scalar_subquery()


def _looking() -> sa.Select[Any]:
    """Return the one query of an idle tick.

    It reads only the ends of indexes.
    """
    not_before, beat = operations.c.not_before, operations.c.heartbeat_at
    beating = IS_RUNNING & beat.is_not(None)
    lease_s, late_s = (sa.bindparam(name, type_=sa.Float) for name in ("lease_s", "late_s"))
    at = sa.bindparam("at", type_=UTCDateTime())
    now = sa.func.coalesce(at, database_now(), type_=UTCDateTime())
    first_unstarted = _first(not_before, sa.text(SENDABLE))
    waiting = sa.select(operations.c.waiting_for).where(
        operations.c.waiting_for.is_not(None), IS_UNSTARTED
    )
    asked: list[Any] = [
        now,
        value_query(LAST_NOW).scalar_subquery(),
        _last(action_cursor.c.watermark),
        _last(operations.c.recorded_at, NEVER_STARTED),
        value_query(KERNEL).scalar_subquery(),
        value_query(TZ_RELEASE).scalar_subquery(),
        value_query(CELERY_QUEUES).scalar_subquery(),
        _first(action_cursor.c.next_occurrence_at) <= now,
        _first(actions.c.small_app_id, actions.c.event.is_not(None)),
        first_unstarted,
        _last(not_before, sa.text(SENDABLE)),
        first_unstarted <= database_now(),
        waiting.exists(),
        sa.select(sa.func.aggregate_strings(findings.c.kind, " "))
        .where(IS_OPEN, findings.c.action_uid.is_(None))
        .scalar_subquery(),
    ]
    is_silent = _first(beat, beating) < database_now(-lease_s)
    # The first ones of `Repairs`.
    repairs = [
        is_silent | (_last(beat, beating) > database_now(lease_s)),
        _first(operations.c.recorded_at, NEVER_STARTED) < database_now(late_s),
        _first(notices.c.not_before, IS_OWED) <= database_now(),
        _first(backfills.c.not_before, IS_ACTIVE_BACKFILL) <= database_now(),
    ]
    return sa.select(*asked, *repairs)


def _looking_closer() -> sa.Select[Any]:
    """Return the query of the last ones of `Repairs`, once something is unsent or waits."""
    not_before = operations.c.not_before

    def first(*where: Any) -> Any:
        found = sa.select(operations.c.id).where(*where).order_by(not_before)
        return found.limit(1).scalar_subquery()

    is_sendable = first(*READY, not_before <= database_now()).is_not(None)
    return sa.select(STRANDED.exists(), first(*IN_DOUBT).is_not(None), is_sendable)


def _looking_at_ends() -> sa.Select[Any]:
    """Return the query of when those were put back that wait longest: a backoff may be as long."""
    its = operations.c
    longest = sa.select(its.id).where(sa.text(SENDABLE)).order_by(its.not_before.desc())
    waits = (its.id.in_(longest.limit(MOST_READ)), PUT_BACK_FROM)
    ended = attempts.c.finished_at
    # Once it was set right, it does not wait for that end.
    return sa.select(sa.func.max(ended)).where(*waits, ended <= its.not_before)


_LOOK, _LOOK_CLOSER, _LOOK_AT_ENDS = _looking(), _looking_closer(), _looking_at_ends()
# The last end that is an event, by the end of the index of each small app.
_ITS_LAST = sa.select(sa.func.max(action_ends.c.ended_at)).where(
    action_ends.c.small_app_id == small_apps.c.id
)
_LAST_EVENT = sa.select(sa.func.max(_ITS_LAST.correlate(small_apps).scalar_subquery())).select_from(
    small_apps
)


def look(
    connection: sa.Connection, at: datetime | None, lease: timedelta, overdue: timedelta
) -> Found:
    """Return the work of a tick; `now` is `at`, or the database's clock.

    What is silent for `lease`, or unstarted for `overdue`, has to be repaired.
    """
    asked = {"at": at, "lease_s": lease.total_seconds(), "late_s": -overdue.total_seconds()}
    now, last, decided, recorded, *rest = connection.execute(_LOOK, asked).one()
    last_now = instant_in(last)
    kernel, tz, celery, due, event_app, unstarted, longest, is_unsent, waits, kinds, *parts = rest
    written = [last_now, decided]
    if at is None:
        # These go by the clock, whatever `now` is.
        may_lie_ahead = longest is not None and longest - now > CLOCK_WAS_WRONG
        written += [recorded, connection.scalar(_LOOK_AT_ENDS) if may_lie_ahead else None]
        written += [None if event_app is None else connection.scalar(_LAST_EVENT)]
    ahead = max([one - now for one in written if one is not None], default=timedelta(0))
    found = frozenset((kinds or "").split())
    closer = connection.execute(_LOOK_CLOSER).one() if is_unsent or waits else ()
    repairs = Repairs(*map(bool, [*parts, FindingKind.MISSED in found, *closer]))
    queued = () if unstarted is None else reserve.queued(connection)
    listened = workers.listened_queues(connection, workers.GONE) if queued else frozenset()
    return Found(
        now, last_now, ahead, bool(due), event_app is not None,
        (kernel, tz), repairs, queued, listened, brokers_down=found & BROKERS.keys(),
        celery_queues=celery,
    )  # fmt: skip
