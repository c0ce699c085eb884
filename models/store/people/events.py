"""Read users' events by ranges of their instants, many ranges per statement."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import given
from models.column_types import StorableText, UTCDateTime
from models.events import ACTIVATED, CREATED, END_OF, LAST_SEEN, Happened, ended_action
from models.operation import OperationState
from models.sql import in_many, insert_ignoring, parts_of
from models.store.conditions import IS_LIVE, of_app
from models.store.people.selection import groups_of
from models.tables import (
    action_cursor,
    action_ends,
    actions,
    events,
    group_members,
    missed_spans,
    operations,
    users,
)

BATCH = 1_000
# The maximum of ranges per statement.
RANGES_AT_ONCE = 5_000
CUSTOM = "custom"
END = "end"
SECOND = timedelta(seconds=1)
# The columns of an event: its instant, and whether an import wrote it without raising the event.
ANCHORS = {
    CREATED: (users.c.created_at, users.c.created_silent),
    ACTIVATED: (users.c.activated_at, users.c.activated_silent),
    LAST_SEEN: (users.c.last_seen_at, users.c.last_seen_silent),
}


@dataclass(frozen=True, slots=True)
class Range:
    """A query for a small app's events in (since, until]; `number` identifies it."""

    number: int
    small_app_id: int
    event: str
    since: datetime
    until: datetime

    @property
    def row(self) -> dict[str, Any]:
        """It as values of a statement."""
        event = ended_action(self.event) or self.event
        instants = {"since": self.since, "until": self.until}
        return {"number": self.number, "app": self.small_app_id, "event": event, **instants}


def happened(connection: sa.Connection, ranges: Sequence[Range]) -> Iterator[list[Happened]]:
    """Yield the events in these ranges, unordered, in batches of at most 1,000.

    Events of unknown users and instants that an import wrote silently do not count.
    """
    kinds: dict[str, list[Range]] = {}
    for one in ranges:
        kinds.setdefault(_kind(one.event), []).append(one)
    for kind, asked in kinds.items():
        statement = _asking(connection.dialect.name, kind)
        for some_ranges in parts_of(asked, RANGES_AT_ONCE):
            asked_for = {"given": [one.row for one in some_ranges]}
            rows = connection.execute(statement, asked_for, execution_options={"yield_per": BATCH})
            for some in rows.partitions():
                yield [_happened(row) for row in some]


def _kind(event: str) -> str:
    if event in ANCHORS:
        return event
    return CUSTOM if ended_action(event) is None else END


def _happened(row: Any) -> Happened:
    if row.state is None:
        return Happened(*row)
    # An operation may end twice, in two states: failed and, after a retry, success.
    return replace(Happened(*row), id=row.id or "", event_id=f"{UUID(row.event_id)} {row.state}")


def next_in(connection: sa.Connection, one: Range, limit: int) -> list[Happened]:
    """Return the first events of a range, by instant."""
    asked = {name: sa.literal(value, _RANGES.c[name].type) for name, value in one.row.items()}
    found = _one_range(_kind(one.event), asked, asked["number"])
    rows = connection.execute(found.order_by(sa.text("at")).limit(limit))
    return [_happened(row) for row in rows]


def with_groups(
    connection: sa.Connection, small_app_id: int, found: Sequence[Happened]
) -> list[Happened]:
    """Return events of a small app with the groups of their users."""
    ids = [one.id for one in found if one.id]
    theirs = in_many(connection, group_members.c.user_id, ids)
    groups = groups_of(connection, small_app_id, theirs)
    return [replace(one, groups=groups.get(one.id, frozenset())) for one in found]


def event_actions(connection: sa.Connection, *only: sa.ColumnElement[bool]) -> Sequence[Any]:
    """Return the active event actions, by uid, with the starts of their windows."""
    query = (
        sa.select(
            actions.c.uid,
            actions.c.small_app_id,
            actions.c.name,
            actions.c.event,
            actions.c.plan,
            actions.c.revision,
            action_cursor.c.effective_from,
        )
        .join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
        .where(
            actions.c.event.is_not(None),
            IS_LIVE,
            actions.c.quarantined.is_(None),
            *only,
        )
        .order_by(actions.c.uid)
    )
    return connection.execute(query).all()


def hold_all(connection: sa.Connection, uids: Collection[UUID]) -> dict[UUID, int]:
    """Lock the cursors of these actions; return the revision of each unchanged one.

    Actions that are locked, paused, deleted or quarantined are missing. Never waits.
    """
    wanted = in_many(connection, action_cursor.c.action_uid, sorted(uids))
    free = sa.select(action_cursor.c.action_uid).where(wanted).order_by(action_cursor.c.action_uid)
    held = (
        connection.execute(free.with_for_update(skip_locked=True, key_share=True)).scalars().all()
    )
    # Read after locking: PostgreSQL would show actions from before.
    unchanged = sa.select(actions.c.uid, actions.c.revision).where(
        in_many(connection, actions.c.uid, held), IS_LIVE, actions.c.quarantined.is_(None)
    )
    return {row.uid: row.revision for row in connection.execute(unchanged)}


def withdraw_missed(connection: sa.Connection, now: datetime) -> datetime | None:
    """Withdraw missed records after `now`; return the instant to decide from again, or None.

    A span across `now` is withdrawn as a whole, with overlapping spans of other actions: all
    actions are decided again from the same instant.
    """
    uids = sa.select(actions.c.uid).where(actions.c.event.is_not(None))
    of_events = missed_spans.c.action_uid.in_(uids)
    connection.execute(
        sa.delete(operations).where(
            operations.c.action_uid.in_(uids),
            operations.c.occurrence_at > now,
            operations.c.state == OperationState.MISSED,
        )
    )
    first, since = sa.select(sa.func.min(missed_spans.c.first_at)).where(of_events), now
    while True:
        found = connection.execute(first.where(missed_spans.c.last_at > since)).scalar_one()
        if found is None or found > since:
            break
        since = found - SECOND
    connection.execute(sa.delete(missed_spans).where(of_events, missed_spans.c.last_at > since))
    return since if since < now else None


_ended = actions.alias("ended")


def dependants(connection: sa.Connection, uid: UUID) -> Sequence[Any]:
    """Return the active actions that are due by the ends of the action `uid`."""
    its_ends = sa.literal(END_OF, sa.Text).concat(_ended.c.name)
    is_its = (_ended.c.uid == uid, actions.c.small_app_id == _ended.c.small_app_id)
    return event_actions(connection, *is_its, actions.c.event == its_ends)


def add(
    connection: sa.Connection, small_app_id: int, event: str, id: str, subject: str, at: datetime
) -> bool:
    """Store a custom event; False, with nothing changed, if the id exists."""
    row = {"small_app_id": small_app_id, "event": event, "id": id}
    added = insert_ignoring(connection, events).values(**row, subject=subject, occurred_at=at)
    return connection.execute(added.returning(events.c.id)).first() is not None


# The columns of a range by their types; no database has this table.
_RANGES = sa.Table(
    "ranges",
    sa.MetaData(),
    *(sa.Column(name, sa.Integer) for name in ("number", "app")),
    sa.Column("event", StorableText),
    *(sa.Column(name, UTCDateTime()) for name in ("since", "until")),
)


@lru_cache(maxsize=16)
def _asking(dialect: str, kind: str) -> sa.Select[Any]:
    """Return the statement that finds the events of each given range by its index.

    PostgreSQL's plan of a plain join depends on statistics: OFFSET prevents a full read.
    """
    asked = given(_RANGES, *_RANGES.c.keys())
    if dialect == "postgresql":
        each = _one_range(kind, asked.c).offset(sa.literal_column("0")).lateral("each")
        return sa.select(asked.c.number, *each.c).select_from(asked).join(each, sa.true())
    return _one_range(kind, asked.c, asked.c.number)


def _one_range(kind: str, asked: Any, *first: Any) -> sa.Select[Any]:
    """Return the events of a range, from `users`, `events` or `action_ends`."""
    user = (users.c.id, users.c.active, users.c.activated_at)
    app = asked["app"]
    no_state = sa.null().label("state")
    if kind == END:
        at = action_ends.c.ended_at
        event_id = sa.cast(action_ends.c.operation_id, sa.Text).label("event_id")
        found = _ends(sa.select(*first, at.label("at"), event_id, *user, action_ends.c.state))
        where: tuple[Any, ...] = (
            of_app(app),
            actions.c.name == asked["event"],
            action_ends.c.subject.is_(None) | users.c.id.is_not(None),
        )
    elif kind == CUSTOM:
        at = events.c.occurred_at
        event_id = events.c.id.label("event_id")
        found = sa.select(*first, at.label("at"), event_id, *user, no_state).join(
            users,
            (users.c.small_app_id == events.c.small_app_id) & (users.c.id == events.c.subject),
        )
        where = (events.c.small_app_id == app, events.c.event == asked["event"])
    else:
        at, is_silent = ANCHORS[kind]
        found = sa.select(*first, at.label("at"), sa.null().label("event_id"), *user, no_state)
        where = (users.c.small_app_id == app, sa.not_(is_silent))
    # The bounds have the column's type, on SQLite too.
    bounds = [sa.type_coerce(asked[name], UTCDateTime()) for name in ("since", "until")]
    return found.where(*where, at > bounds[0], at <= bounds[1])


def _ends(chosen: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query of ends with their actions and, if they are about one, their users."""
    its_user = (users.c.small_app_id == actions.c.small_app_id) & (
        users.c.id == action_ends.c.subject
    )
    found = sa.join(actions, action_ends, action_ends.c.action_uid == actions.c.uid)
    return chosen.select_from(found.outerjoin(users, its_user))
