"""Store, find and list actions and their revisions."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import insert_all, insert_new, update_all
from models.column_types import UTCDateTime
from models.errors import Hint, NotFound, Refused
from models.events import END_OF, end_event
from models.sql import dicts, in_many
from models.store.actions.status import listing
from models.store.conditions import NOT_DELETED, of_app
from models.store.scope import Scope
from models.stored import document_in, uuid_in
from models.tables import action_cursor, actions, revisions
from models.values import composed

if TYPE_CHECKING:
    from models.action.plan import Plan, UnreadablePlan

# The most seconds that the column of look-backs takes on PostgreSQL.
LONGEST_S = 2**31 - 1
SEE_ACTIONS = Hint("see `minutebook action list`", "look for it among the actions")


def insert(
    connection: sa.Connection,
    small_app_id: int,
    revisions_of: Mapping[UUID, dict[str, Any]],
    next_at: Mapping[UUID, datetime | None],
    now: datetime,
    created_at: datetime | None = None,
) -> None:
    """Store new actions with their first revisions; their occurrences begin after `now`.

    `next_at` are the first ones. `created_at` is the instant by which their documents were
    completed, `now` if not given.

    A revision has name, owner, active, document, document_hash, plan (texts) and author. Raises
    Refused if a name is taken.
    """
    at = sa.literal(now, UTCDateTime())
    rows = [{"uid": uid, **one} for uid, one in revisions_of.items()]
    authors = {one.pop("author") for one in rows}
    stored = insert_new(
        connection,
        actions,
        rows,
        {
            "small_app_id": sa.literal(small_app_id),
            "revision": sa.literal(1),
            "created_at": at if created_at is None else sa.literal(created_at, UTCDateTime()),
            "updated_at": at,
        },
    )
    if len(stored) < len(rows):
        raise Refused("an action of one of these names exists; nothing is stored")
    (author,) = authors
    _begin(connection, stored, next_at, author, at)


def _begin(
    connection: sa.Connection,
    uids: Sequence[UUID],
    next_at: Mapping[UUID, datetime | None],
    author: str,
    at: sa.ColumnElement[datetime],
) -> None:
    """Store the first revisions and the cursors of new actions, from their rows."""
    first = {
        "document": actions.c.document,
        "plan": actions.c.plan,
        "number": sa.literal(1),
        "author": sa.literal(author, revisions.c.author.type),
        "effective_from": at,
    }
    of_each = sa.select(actions.c.uid, *first.values())
    of_each = of_each.where(in_many(connection, actions.c.uid, uids))
    connection.execute(sa.insert(revisions).from_select(["action_uid", *first], of_each))
    rows = [{"action_uid": uid, "next_occurrence_at": next_at[uid]} for uid in uids]
    insert_all(connection, action_cursor, rows, {"watermark": at, "effective_from": at})


def replace_all(
    connection: sa.Connection, revisions_of: Mapping[UUID, dict[str, Any]], now: datetime
) -> None:
    """Make revisions the current ones of their actions, from `now` on.

    Each has its `number`, and what `insert` names or, like all the others, a part of that.
    """
    own = {"number", "author"}
    current = [
        {"uid": uid, "revision": one["number"]}
        | {name: value for name, value in one.items() if name not in own}
        for uid, one in revisions_of.items()
    ]
    update_all(connection, actions, current, updated_at=now, quarantined=None)
    stored = ("number", "document", "plan", "author")
    rows = [
        {"action_uid": uid} | {name: one[name] for name in stored}
        for uid, one in revisions_of.items()
    ]
    if rows:
        insert_all(connection, revisions, rows, {"effective_from": sa.literal(now, UTCDateTime())})


def quarantined(connection: sa.Connection, uid: UUID, reason: str) -> None:
    """Quarantine a broken action with the reason, until its next change; ticks ignore it.

    Its newest revision ends at the watermark.
    """
    connection.execute(sa.update(actions).where(actions.c.uid == uid).values(quarantined=reason))
    connection.execute(
        sa.update(action_cursor)
        .where(action_cursor.c.action_uid == uid)
        .values(next_occurrence_at=None)
    )
    number = sa.select(actions.c.revision).where(actions.c.uid == uid).scalar_subquery()
    watermark = sa.select(action_cursor.c.watermark).where(action_cursor.c.action_uid == uid)
    connection.execute(
        sa.update(revisions)
        .where(revisions.c.action_uid == uid, revisions.c.number == number)
        .where(revisions.c.ended_at.is_(None))
        .values(ended_at=watermark.scalar_subquery(), end_reason=f"quarantined: {reason}")
    )


def find(
    connection: sa.Connection,
    small_app_id: int,
    name_or_uid: str,
    scope: Scope,
    *,
    include_deleted: bool = False,
) -> dict[str, Any]:
    """Return the action of that name in the small app, or of that uid in the scope.

    A deleted one is found by its uid alone, if at all. Raises NotFound.
    """
    query = listing()
    its_name = actions.c.name == composed(name_or_uid)
    by_name = (actions.c.small_app_id == small_app_id) & its_name & NOT_DELETED
    row = connection.execute(query.where(by_name)).mappings().one_or_none()
    if row is None and (uid := uuid_in(name_or_uid)) is not None:
        by_uid = (actions.c.uid == uid) & scope.has(actions.c.small_app_id)
        stands = sa.true() if include_deleted else NOT_DELETED
        row = connection.execute(query.where(by_uid, stands)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"no action is named {name_or_uid!r}", SEE_ACTIONS)
    return dict(row)


def listed(connection: sa.Connection, small_app_id: int | None) -> list[dict[str, Any]]:
    """Return the actions of a small app, or of all, with their status, by name."""
    its_own = Scope(small_app_id).has(actions.c.small_app_id)
    query = listing().where(NOT_DELETED, its_own)
    return dicts(connection, query.order_by(actions.c.name))


def longest_look_back(
    connection: sa.Connection, over: timedelta, small_app_id: int | None = None
) -> tuple[str, timedelta] | None:
    """Return name and look-back of the action with the longest one above `over`, or None."""
    query = (
        sa.select(actions.c.name, actions.c.look_back_s)
        .where(actions.c.look_back_s > int(over.total_seconds()), NOT_DELETED)
        # A hand's value. To SQLite, a text is greater than any number.
        .where(actions.c.look_back_s < LONGEST_S)
        .where(Scope(small_app_id).has(actions.c.small_app_id))
        .order_by(actions.c.look_back_s.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.name, timedelta(seconds=row.look_back_s))


def count(connection: sa.Connection) -> tuple[int, int]:
    """Return the number of actions, and of active ones."""
    # A sum could overflow: SQLite takes any number as the value of a switch.
    active = sa.func.count(sa.case((actions.c.active, 1)))
    row = connection.execute(sa.select(sa.func.count(), active).where(NOT_DELETED)).one()
    return row[0], row[1]


def watched_by_name(connection: sa.Connection, small_app_id: int) -> dict[str, str]:
    """Return the small app's actions that are due by another's ends, with that other's name."""
    found = sa.select(actions.c.name, actions.c.event).where(
        of_app(small_app_id),
        # All events that begin like this; the index holds them in order.
        actions.c.event >= END_OF,
        actions.c.event < END_OF[:-1] + chr(ord(END_OF[-1]) + 1),
    )
    return {row.name: row.event.removeprefix(END_OF) for row in connection.execute(found)}


def dependants(
    connection: sa.Connection, small_app_id: int, name: str, limit: int | None = None
) -> Sequence[Any]:
    """Return uid and name of the actions that are due by the ends of the named one, by name."""
    found = sa.select(actions.c.uid, actions.c.name).where(
        of_app(small_app_id), actions.c.event == end_event(name)
    )
    return connection.execute(found.order_by(actions.c.name).limit(limit)).all()


def names_among(connection: sa.Connection, small_app_id: int, names: Collection[str]) -> set[str]:
    """Return those of these names that an action of the small app has."""
    found = sa.select(actions.c.name).where(
        of_app(small_app_id), in_many(connection, actions.c.name, sorted(names))
    )
    return set(connection.execute(found).scalars())


def first_names(connection: sa.Connection, small_app_id: int, limit: int) -> list[str]:
    """Return the names of up to `limit` actions of the small app, in order."""
    query = sa.select(actions.c.name).where(of_app(small_app_id))
    return list(connection.execute(query.order_by(actions.c.name).limit(limit)).scalars())


def uid_named(connection: sa.Connection, small_app_id: int, name: object) -> UUID | None:
    """Return the uid of the action of that name in the small app, or None."""
    if not isinstance(name, str):
        return None
    found = sa.select(actions.c.uid).where(of_app(small_app_id), actions.c.name == name)
    return connection.execute(found).scalar_one_or_none()


def revision_document(connection: sa.Connection, uid: UUID, number: int) -> dict[str, Any] | None:
    """Return the stored document of a revision, None if it is missing."""
    text = connection.execute(
        sa.select(revisions.c.document).where(
            revisions.c.action_uid == uid, revisions.c.number == number
        )
    ).scalar_one_or_none()
    return None if text is None else document_in(text)


def plan_at(
    connection: sa.Connection, uid: UUID, number: int | None
) -> "Plan | UnreadablePlan | None":
    """Return the plan of a revision, None if it is missing."""
    its = (revisions.c.action_uid == uid, revisions.c.number == number)
    found: Plan | UnreadablePlan | None = connection.execute(
        sa.select(revisions.c.plan).where(*its)
    ).scalar_one_or_none()
    return found


def revisions_of(
    connection: sa.Connection, uid: UUID, before: int | None, limit: int
) -> list[dict[str, Any]]:
    """Return up to `limit` of an action's revisions, the newest first.

    Those before the number `before`.
    """
    shown = (
        revisions.c.number,
        revisions.c.author,
        revisions.c.effective_from,
        revisions.c.ended_at,
        revisions.c.end_reason,
        revisions.c.document,
    )
    query = sa.select(*shown).where(revisions.c.action_uid == uid)
    if before is not None:
        query = query.where(revisions.c.number < before)
    found = dicts(connection, query.order_by(revisions.c.number.desc()).limit(limit))
    return [{**row, "document": document_in(row["document"])} for row in found]
