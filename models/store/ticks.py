"""Store tick reports, live workers and facts of the installation."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.carriers import CELERY, OURS
from models.column_types import UTCDateTime
from models.sql import database_now, dicts, insert_ignoring, read_clock, upsert
from models.store.conditions import (
    IS_ACTIVE_BACKFILL,
    IS_OWED,
    IS_RUNNING,
    IS_UNSTARTED,
    NEVER_STARTED,
    WAITS_TURN,
)
from models.stored import document_in, instant_in
from models.tables import (
    SENDABLE,
    action_cursor,
    actions,
    backfills,
    installation,
    notices,
    operations,
    ticks,
    workers,
)

LAST_NOW = "last_tick_now"
# The version of the kernel and the tz release that decide: `scheduler/kernel_release.py`.
KERNEL = "kernel_version"
TZ_RELEASE = "tz_release"
CLOCK_SET_BACK = "clock_set_back"
# The instant to which cursors are wound back, while some lie ahead of it.
WINDING_BACK = "winding_back"
DOWNTIME = "downtime"
# The last clean stop of a daemon: `{"daemon": …, "at": …}`.
STOPPED = "daemon_stopped"
# The instant up to which all event actions are decided; absent before the first decision.
EVENTS_DECIDED = "events_decided_until"
# The name and number of the mark in the broker.
BROKER_MARK = "broker_mark"
# How far the last tick's `now` may lie from the clock before the clock was wrong.
CLOCK_WAS_WRONG = timedelta(minutes=5)
# A worker that was not seen for this long is gone.
GONE = timedelta(minutes=1)


_REPORT = sa.insert(ticks).values(finished_at=database_now())


def report(
    connection: sa.Connection,
    daemon: str,
    now: datetime,
    duration_ms: float,
    report: dict[str, Any],
) -> None:
    """Store one tick's report."""
    row = {"daemon": daemon, "now": now, "duration_ms": duration_ms, "report": report}
    connection.execute(_REPORT, row)


@dataclass(frozen=True, slots=True)
class Found:
    """A tick's `now`, the last one's, and its work; `has_events` if event actions exist."""

    now: datetime
    last_now: datetime | None
    # Cursors may lie ahead of a clock that was set back.
    has_to_wind_back: bool
    has_due: bool
    has_to_sweep: bool
    has_events: bool
    # The stored kernel and tz release.
    release: tuple[str | None, str | None]


def fact_query(key: str) -> sa.Select[Any]:
    """Return the query of the fact under `key`."""
    return sa.select(installation.c.value).where(installation.c.key == key)


def _looking() -> sa.Select[Any]:
    """Return the one query of an idle tick.

    It reads only the ends of indexes.
    """
    sendable = sa.text(SENDABLE)
    not_before, beat = operations.c.not_before, operations.c.heartbeat_at
    beating = IS_RUNNING & beat.is_not(None)
    first_due = sa.select(sa.func.min(action_cursor.c.next_occurrence_at)).scalar_subquery()
    an_event_action = sa.select(sa.func.min(actions.c.small_app_id)).where(
        actions.c.event.is_not(None)
    )
    first_sendable = sa.select(sa.func.min(not_before)).where(sendable).scalar_subquery()
    first_beat = sa.select(sa.func.min(beat)).where(beating).scalar_subquery()
    last_beat = sa.select(sa.func.max(beat)).where(beating).scalar_subquery()
    first_owed = sa.select(sa.func.min(notices.c.not_before)).where(IS_OWED).scalar_subquery()
    never_started = sa.select(sa.func.min(operations.c.recorded_at)).where(NEVER_STARTED)
    first_overdue = never_started.scalar_subquery()
    waiting = sa.select(operations.c.waiting_for).where(
        operations.c.waiting_for.is_not(None), IS_UNSTARTED
    )
    turns = sa.select(operations.c.id).where(WAITS_TURN)
    first_backfill = (
        sa.select(sa.func.min(backfills.c.not_before)).where(IS_ACTIVE_BACKFILL).scalar_subquery()
    )
    lease_s = sa.bindparam("lease_s", type_=sa.Float)
    at = sa.bindparam("at", type_=UTCDateTime())
    now = sa.func.coalesce(at, database_now(), type_=UTCDateTime())
    return sa.select(
        now,
        fact_query(LAST_NOW).scalar_subquery(),
        fact_query(WINDING_BACK).exists(),
        fact_query(KERNEL).scalar_subquery(),
        fact_query(TZ_RELEASE).scalar_subquery(),
        first_due <= now,
        an_event_action.scalar_subquery(),
        first_sendable <= database_now(),
        first_beat < database_now(-lease_s),
        last_beat > database_now(lease_s),
        waiting.exists(),
        turns.exists(),
        first_backfill <= database_now(),
        first_owed <= database_now(),
        first_overdue < database_now(sa.bindparam("late_s", type_=sa.Float)),
    )


_LOOK = _looking()


def look(
    connection: sa.Connection, at: datetime | None, lease: timedelta, overdue: timedelta
) -> Found:
    """Return the work of a tick, by one statement; `now` is `at`, or the database's clock.

    The sweep has work if anything is sendable, waiting, silent for `lease`, or unstarted for
    `overdue`.
    """
    asked = {"at": at, "lease_s": lease.total_seconds(), "late_s": -overdue.total_seconds()}
    now, last, winding, *rest = connection.execute(_LOOK, asked).one()
    kernel, tz, due, event_app, *to_sweep = rest
    last_now, has_events = instant_in(last), event_app is not None
    return Found(now, last_now, bool(winding), bool(due), any(to_sweep), has_events, (kernel, tz))


def hold_last_now(connection: sa.Connection) -> datetime | None:
    """Return the last tick's `now`; until this transaction ends, no other tick changes it."""
    return instant_in(hold_fact(connection, LAST_NOW))


def clock_went_back(connection: sa.Connection, now: datetime, by: timedelta) -> bool:
    """Return whether the last tick's `now` lies more than `by` before this one.

    Until this transaction ends, no other tick sets the clock right. Ticks without a jump go on.
    """
    last_now = instant_in(hold_fact(connection, LAST_NOW, read=True, key_share=True))
    return last_now is not None and last_now < now - by


def last(connection: sa.Connection) -> dict[str, Any] | None:
    """Return the last stored tick report, None before the first.

    After a clock was ahead, older reports have later instants. `stopped_at` is when its daemon
    stopped cleanly; None if the last clean stop was another's, or none.
    """
    stop = fact_query(STOPPED).scalar_subquery()
    query = sa.select(ticks, stop.label("stop")).order_by(ticks.c.id.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    report: dict[str, Any] = row["report"]
    skew_s = report.get("clock_skew_s")
    if not isinstance(skew_s, int | float):
        report = {key: value for key, value in report.items() if key != "clock_skew_s"}
    said = document_in(row["stop"] or "")
    stopped_at = instant_in(said.get("at")) if said.get("daemon") == row["daemon"] else None
    return {**row, "report": report, "stopped_at": stopped_at}


def daemon_stopped(connection: sa.Connection, daemon: str) -> None:
    """Record that a daemon stopped cleanly, now."""
    at = read_clock(connection)
    set_fact(connection, STOPPED, json.dumps({"daemon": daemon, "at": at.isoformat()}))


def has_ticked(connection: sa.Connection, daemon_prefix: str, within: timedelta) -> bool:
    """Return whether a daemon with that name prefix ended a tick within that span."""
    query = sa.select(sa.literal(1)).where(
        # An instant in the future comes from a clock that was ahead: ignore it.
        ticks.c.finished_at.between(database_now(-within), database_now(within)),
        ticks.c.daemon.startswith(daemon_prefix, autoescape=True),
    )
    return connection.execute(query.limit(1)).first() is not None


def clock_was_ahead(by: timedelta) -> sa.ColumnElement[bool]:
    """Return the condition that a tick ended more than `by` after the database's clock now."""
    ahead = sa.select(sa.literal(1)).where(ticks.c.finished_at > database_now(by))
    return ahead.limit(1).exists()


def fact(connection: sa.Connection, key: str) -> str | None:
    """Return the installation's fact under `key`, or None."""
    return connection.execute(fact_query(key)).scalar_one_or_none()


def hold_fact(
    connection: sa.Connection, key: str, *, read: bool = False, key_share: bool = False
) -> str | None:
    """Return the fact under `key`, its row locked until this transaction ends, or None.

    `read` and `key_share` are those of `with_for_update`. SQLite locks nothing here.
    """
    held = fact_query(key).with_for_update(read=read, key_share=key_share)
    return connection.execute(held).scalar_one_or_none()


def hold_facts(connection: sa.Connection, keys: Sequence[str]) -> dict[str, str]:
    """Return the facts under `keys` that exist, by key.

    Until this transaction ends, no other one that holds a fact by `hold_fact` changes it.
    """
    query = sa.select(installation.c.key, installation.c.value)
    among = query.where(installation.c.key.in_(keys)).order_by(installation.c.key)
    held = connection.execute(among.with_for_update(read=True, key_share=True))
    return {row.key: row.value for row in held}


def json_fact(connection: sa.Connection, key: str) -> dict[str, Any]:
    """Return the installation's JSON object under `key`; empty if missing or invalid."""
    text = fact(connection, key)
    return {} if text is None else document_in(text)


def clock_set_back(connection: sa.Connection) -> tuple[datetime, timedelta] | None:
    """Return when the clock was last set back, and by how much; None if missing or unreadable."""
    stored = json_fact(connection, CLOCK_SET_BACK)
    at, seconds = instant_in(stored.get("at")), stored.get("seconds")
    if at is None or not isinstance(seconds, int | float):
        return None
    try:
        return at, timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None


def instant_fact(connection: sa.Connection, key: str) -> datetime | None:
    """Return the installation's instant under `key`, or None."""
    return instant_in(fact(connection, key))


def move_fact(connection: sa.Connection, key: str, seen: str | None, value: str) -> bool:
    """Replace a fact whose value is `seen` (None: missing); False if it has changed."""
    if seen is None:
        first = insert_ignoring(connection, installation).values(key=key, value=value)
        added = connection.execute(first.returning(installation.c.key))
        return added.first() is not None
    moved = sa.update(installation).where(installation.c.key == key, installation.c.value == seen)
    return connection.execute(moved.values(value=value)).rowcount == 1


def set_fact(connection: sa.Connection, key: str, value: str) -> None:
    """Store a fact of the installation."""
    upsert(connection, installation, [{"key": key, "value": value}])


def remove_fact(connection: sa.Connection, key: str) -> None:
    """Remove a fact of the installation; nothing happens if there is none."""
    connection.execute(sa.delete(installation).where(installation.c.key == key))


def mark(connection: sa.Connection) -> tuple[str, int] | None:
    """Return the name and number of the mark in the broker, or None."""
    return _mark_in(fact(connection, BROKER_MARK))


def replace_mark(connection: sa.Connection, lost: str | None, name: str, number: int) -> bool:
    """Store a new mark for the one named `lost`, None for none; False if another daemon has."""
    seen = fact(connection, BROKER_MARK)
    stored = _mark_in(seen)
    if (stored and stored[0]) != lost:
        return False
    return move_fact(connection, BROKER_MARK, seen, f"{name} {number}")


def _mark_in(text: str | None) -> tuple[str, int] | None:
    name, _, number = (text or "").partition(" ")
    return (name, int(number)) if number.isdecimal() else None


def raise_mark(connection: sa.Connection, name: str, number: int) -> None:
    """Store the mark's number, if its name is still current."""
    connection.execute(_RAISE_MARK, {"name": f"{name} ", "mark": f"{name} {number}"})


# Made once: each tick does it.
_RAISE_MARK = (
    sa.update(installation)
    .where(installation.c.key == BROKER_MARK)
    .where(installation.c.value.startswith(sa.bindparam("name", type_=sa.Text)))
    .values(value=sa.bindparam("mark"))
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A live worker, its comma-separated queues, and by how much its clock is ahead."""

    name: str
    queues: str
    pid: int
    skew_s: float | None = None
    # The user's tasks that it follows; None for a Minutebook worker.
    follows: Sequence[str] | None = None
    # How many operations a Minutebook worker runs at once.
    slots: int | None = None


def worker_seen(connection: sa.Connection, worker: Seen) -> None:
    """Record that a worker is alive."""
    _seen(connection, worker, workers.c.name == worker.name)


def follower_seen(connection: sa.Connection, worker: Seen) -> None:
    """Record that a worker of the user's application is alive; none takes the name of ours."""
    _seen(connection, worker, _is_follower(worker.name))


def _is_follower(name: str) -> sa.ColumnElement[bool]:
    return (workers.c.name == name) & workers.c.follows.is_not(None)


def _seen(connection: sa.Connection, worker: Seen, its_row: sa.ColumnElement[bool]) -> None:
    values = {
        "queues": worker.queues,
        "pid": worker.pid,
        "seen_at": database_now(),
        "stopped_at": None,
        "skew_s": worker.skew_s,
        "slots": worker.slots,
        "follows": sa.null() if worker.follows is None else list(worker.follows),
    }
    seen = sa.update(workers).where(its_row).values(values)
    if connection.execute(seen).rowcount == 0:
        # Each process of a worker's pool reports: another one may have been first.
        first = insert_ignoring(connection, workers)
        connection.execute(first.values(name=worker.name, started_at=database_now(), **values))


def note_step_failures(connection: sa.Connection, name: str, failures: dict[str, str]) -> None:
    """Record the step modules that a worker could not load, with the reasons."""
    noted = sa.update(workers).where(workers.c.name == name)
    connection.execute(noted.values(step_failures=failures or sa.null()))


def worker_stopped(connection: sa.Connection, name: str) -> None:
    """Record that a worker stopped cleanly."""
    stopped = sa.update(workers).values(stopped_at=database_now())
    connection.execute(stopped.where(workers.c.name == name))


def follower_stopped(connection: sa.Connection, name: str) -> None:
    """Record that a worker of the user's application stopped cleanly."""
    stopped = sa.update(workers).values(stopped_at=database_now())
    connection.execute(stopped.where(_is_follower(name)))


def followed_tasks(connection: sa.Connection, within: timedelta) -> set[str]:
    """Return the names of the user's tasks that workers seen within that span follow."""
    query = (
        sa.select(workers.c.follows)
        .where(workers.c.seen_at.between(database_now(-within), database_now(within)))
        .where(workers.c.follows.is_not(None))
    )
    found = connection.execute(query).scalars()
    return {name for names in found for name in names or () if isinstance(name, str)}


def listened_queues(connection: sa.Connection, within: timedelta) -> frozenset[str]:
    """Return the broker's names of the queues that live workers consume."""
    return queues_of(live_workers(connection, within))


def queues_of(live: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the broker's names of the queues that these workers consume."""
    return frozenset(
        (OURS if worker["follows"] is None else CELERY).listed(queue.strip())
        for worker in live
        for queue in worker["queues"].split(",")
    )


def live_workers(connection: sa.Connection, within: timedelta) -> list[dict[str, Any]]:
    """Return the workers seen within that span that have not stopped, by name."""
    query = (
        sa.select(workers)
        .where(workers.c.seen_at.between(database_now(-within), database_now(within)))
        .where(workers.c.stopped_at.is_(None))
        .order_by(workers.c.name)
    )
    return dicts(connection, query)
