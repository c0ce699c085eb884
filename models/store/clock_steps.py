"""Set right what was written while the database's clock was ahead: one rule, column by column.

What people chose for later is neither evidence nor moved: due dates, a `starting_at`, the end of a
pause, expiries, and a backoff that the right clock set. What was sent stays sent: its id prevents a
second run. Records of what ran keep the instants that their clock showed.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.document import document_hash
from models.action.intervals import IntervalModel
from models.action.plan import Plan
from models.bulk_sql import given
from models.column_types import UTCDateTime
from models.operation import UNSTARTED, OperationState
from models.sql import database_now, in_unindexed
from models.store import key_values
from models.store.actions.missed import due_among, recorded_in, with_plans
from models.store.conditions import (
    IS_ACTIVE_BACKFILL,
    IS_LIVE,
    IS_OWED,
    IS_UNSTARTED,
    NOT_DELETED,
    PUT_BACK_FROM,
)
from models.store.notices import LONGEST_WAIT
from models.store.operations import RESERVED_FOR
from models.store.people import events
from models.stored import document_in
from models.tables import (
    action_cursor,
    action_ends,
    actions,
    attempts,
    backfills,
    findings,
    missed_spans,
    notices,
    operations,
    revisions,
)
from models.values import format_instant

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
# Before any event that can still make something due.
OVER = datetime(1970, 1, 1, tzinfo=UTC)
# In the text of a plan that counts from an instant.
COUNTING = '"starting_at":'


def set_right(connection: sa.Connection, now: datetime) -> None:
    """Let nothing that a wrong clock wrote lie ahead of `now`.

    Actions that lie ahead are due at once, so that a tick decides them again from `now` on. The
    locks of all of them are held until the transaction ends.
    """
    if connection.dialect.name == "postgresql":
        # There may be a million of them.
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    seen = key_values.instant_value(connection, key_values.EVENTS_DECIDED)
    first_at = events.withdraw_missed(connection, now) or now
    if seen is not None:
        key_values.set_value(
            connection, key_values.EVENTS_DECIDED, min(seen, first_at, now).isoformat()
        )
    # Occurrences, and so the ends of spans, are whole seconds.
    second, at = (sa.literal(one, UTCDateTime()) for one in (now.replace(microsecond=0), now))
    _count_from(connection, second, actions.c.created_at > now)
    again = _withdrawn_across(connection, at)
    _count_across(connection, now.replace(microsecond=0))
    for statement in _statements(second, at):
        connection.execute(statement)
    if again:
        connection.execute(_DECIDED, {"given": again})


_UNTIL = given(action_cursor, "action_uid", "watermark")
_DECIDED = (
    sa.update(action_cursor)
    .where(action_cursor.c.action_uid == _UNTIL.c.action_uid)
    .values(watermark=_UNTIL.c.watermark)
)


def _withdrawn_across(
    connection: sa.Connection, now: sa.ColumnElement[datetime]
) -> list[dict[str, Any]]:
    """Withdraw spans across `now` that a tick can decide again; return the watermarks before them.

    The others belong to old revisions, or to actions that are deleted or quarantined.
    """
    its, is_across = missed_spans.c, missed_spans.c.first_at <= now
    is_newest = (actions.c.uid == its.action_uid, actions.c.revision == its.revision)
    decided = sa.exists().where(*is_newest, NOT_DELETED, actions.c.quarantined.is_(None))
    those = (is_across, its.last_at > now, decided)
    query = sa.select(its.action_uid, sa.func.min(its.first_at)).where(*those)
    found = connection.execute(query.group_by(its.action_uid)).all()
    connection.execute(sa.delete(missed_spans).where(*those))
    return [{"action_uid": uid, "watermark": at - SECOND} for uid, at in found if at and uid]


def _count_across(connection: sa.Connection, now: datetime) -> None:
    """Count what is left of spans across `now`, where a rule of the clock knows how many."""
    its = missed_spans.c
    across = with_plans().where(its.first_at <= now, its.last_at > now)
    found = connection.execute(across).mappings().all()
    for span, recorded in zip(found, recorded_in(connection, found), strict=True):
        plan, uid, first = span["plan"], span["action_uid"], span["first_at"]
        if not isinstance(plan, Plan) or plan.on_event is not None or plan.calendars:
            continue
        others = due_among(plan, uid, {id: at for id, at in recorded.items() if at <= now})
        count = plan.schedule(uid).count(first - SECOND, now) - others
        counted = sa.update(missed_spans).values(count=count) if count else sa.delete(missed_spans)
        connection.execute(counted.where(its.id == span["id"]))


def _statements(
    second: sa.ColumnElement[datetime], now: sa.ColumnElement[datetime]
) -> Iterator[sa.Executable]:
    is_missed = operations.c.state == OperationState.MISSED
    yield sa.delete(operations).where(is_missed, operations.c.occurrence_at > now)
    yield sa.delete(missed_spans).where(missed_spans.c.first_at > now)
    yield _clamped(missed_spans, second, "last_at")
    yield _clamped(action_cursor, now, "watermark", "effective_from", "ended_at").values(
        next_occurrence_at=_due_from(now)
    )
    yield _clamped(revisions, now, "effective_from", "ended_at")
    yield from _released()
    yield _happened_by(now)
    yield _clamped(operations, database_now(), "recorded_at").where(IS_UNSTARTED)
    yield _clamped(findings, database_now(), "began_at", "ended_at")


def _happened_by(now: sa.ColumnElement[datetime]) -> sa.Executable:
    """Return the statement that lets the ends of operations raise their events by `now`.

    The instant of an event is in the ids of what it makes due. So an end by which something was
    recorded is over, and makes nothing else due: that would be a second run.
    """
    its, recorded = action_ends.c, operations.c
    event_id = sa.cast(its.operation_id, sa.Text).concat(" ").concat(its.state)
    ran = sa.select(recorded.event_id).where(
        recorded.event_id.is_not(None), recorded.event_at > now
    )
    is_over = (event_id.in_(ran), sa.literal(OVER, UTCDateTime()))
    ahead = sa.update(action_ends).where(its.ended_at > now)
    return ahead.values(ended_at=sa.case(is_over, else_=now))


def _clamped(table: sa.Table, now: sa.ColumnElement[datetime], *names: str) -> Any:
    """Return the statement that lets none of these columns lie ahead of `now`."""
    columns = [table.c[name] for name in names]
    values = {one.name: sa.case((one > now, now), else_=one) for one in columns}
    return sa.update(table).where(sa.or_(*(one > now for one in columns))).values(values)


def _released() -> Iterator[sa.Executable]:
    """Yield what lets nothing wait for an instant of the wrong clock.

    A repeated message is harmless. What is being sent keeps its reservation, so that it is not in
    doubt too soon.
    """
    its, clock = operations.c, database_now()
    earliest = sa.case((its.send_started_at.is_(None), clock), else_=database_now(RESERVED_FOR))
    failed_ahead = sa.exists().where(PUT_BACK_FROM, attempts.c.finished_at > clock)
    is_no_backoff = (its.failures == 0) | in_unindexed(its.state, {OperationState.QUEUED})
    waits = (
        in_unindexed(its.state, UNSTARTED),
        its.waiting_for.is_(None),
        its.not_before > earliest,
    )
    released = sa.update(operations).where(*waits, is_no_backoff | failed_ahead)
    yield released.values(not_before=earliest)
    for table, is_open, longest in (
        (notices, IS_OWED, LONGEST_WAIT),
        (backfills, IS_ACTIVE_BACKFILL, RESERVED_FOR),
    ):
        is_ahead = table.c.not_before > database_now(longest)
        yield sa.update(table).where(is_open, is_ahead).values(not_before=clock)


def begin_again(connection: sa.Connection, uid: UUID, now: datetime) -> None:
    """Let the revisions of a changed action begin at `now` at the latest, after a small step."""
    clamped = _clamped(revisions, sa.literal(now, UTCDateTime()), "effective_from")
    connection.execute(clamped.where(revisions.c.action_uid == uid))


def begin_events(connection: sa.Connection, now: datetime) -> None:
    """Let event actions that were changed ahead of `now` begin at `now`, after a small step too.

    They have no watermark that waits for the clock to catch up.
    """
    of_events = sa.select(actions.c.uid).where(actions.c.event.is_not(None))
    ahead = (action_cursor.c.watermark > now, action_cursor.c.effective_from > now)
    its = sa.update(action_cursor).where(action_cursor.c.action_uid.in_(of_events), *ahead)
    connection.execute(its.values(effective_from=now))


def _count_from(
    connection: sa.Connection, at: sa.ColumnElement[datetime], which: sa.ColumnElement[bool]
) -> None:
    """Let actions be created at an instant, and count from it unless a person wrote otherwise."""
    query = sa.select(actions, at.label("now")).where(which)
    counting = sa.type_coerce(actions.c.plan, sa.Text).contains(COUNTING)
    for row in connection.execute(query.where(counting)).all():
        its = revisions.c.action_uid == row.uid
        for one in connection.execute(sa.select(revisions).where(its)).all():
            if not isinstance(one.plan, Plan):
                continue
            document = document_in(one.document)
            values: dict[str, Any] = {"plan": one.plan.counting_from(row.now, document).to_json()}
            if row.job_id is not None:
                values |= _begun_job(one.plan, document, row.created_at, row.now)
            revision = sa.update(revisions).where(its, revisions.c.number == one.number)
            connection.execute(revision.values(**values))
            if one.number == row.revision:
                if "document" in values:
                    values["document_hash"] = document_hash(document_in(values["document"]), {})
                moved = sa.update(actions).where(actions.c.uid == row.uid)
                connection.execute(moved.values(**values, created_at=row.now))
    connection.execute(sa.update(actions).where(which).values(created_at=at))


def _begun_job(
    plan: Plan, document: dict[str, Any], created_at: datetime, now: datetime
) -> dict[str, str]:
    """Return the columns of a job whose grid begins within an interval of `now`; none if it may.

    Our clock gave a job its `starting_at`, which its document has: its first run. What is far from
    the creation is a person's. The instants of the grid stay: jobs stay spread over an interval.
    """
    rule, when = plan.repeating, document.get("when")
    if not (isinstance(rule, IntervalModel) and isinstance(when, dict) and "starting_at" in when):
        return {}
    start, every = rule.begins_at, rule.every
    if start <= now or not -HOUR <= start - created_at <= every + HOUR:
        return {}
    begins = start - (start - now) // every * every
    moved = replace(plan, rules=(rule.model_copy(update={"starting_at": begins}),))
    document = {**document, "when": {**when, "starting_at": format_instant(begins)}}
    return {"plan": moved.to_json(), "document": json.dumps(document, ensure_ascii=False)}


def _due_from(at: sa.ColumnElement[datetime]) -> sa.ColumnElement[datetime]:
    """Return `at` for scheduled or runnable actions, else NULL: the next tick decides them."""
    can_run = sa.exists().where(
        actions.c.uid == action_cursor.c.action_uid,
        IS_LIVE,
        actions.c.quarantined.is_(None),
        actions.c.event.is_(None),
    )
    is_scheduled = action_cursor.c.next_occurrence_at.is_not(None)
    return sa.case((is_scheduled | can_run, at), else_=None)
