"""Store the users and groups of a small app, and select recipients."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from minutebook.steps import Recipient
from models.action.recipients import RecipientFilterModel
from models.sql import insert_ignoring, parts_of, read_clock, upsert
from models.store.people.selection import groups_of, is_named
from models.tables import group_members, groups, users
from models.users import UserModel

BATCH = 500
# A user's instants, and the flags that they raise no event.
SILENT = {
    "created_at": "created_silent",
    "activated_at": "activated_silent",
    "last_seen_at": "last_seen_silent",
}


@dataclass(frozen=True, slots=True)
class User:
    """A stored user; `active` false means disabled, `activated_at` None never activated.

    Not a `UserModel`: a row may have no address, and says what raised no event.
    """

    id: str
    email: str
    name: str | None
    active: bool
    created_at: datetime
    activated_at: datetime | None
    last_seen_at: datetime | None
    groups: frozenset[str]
    # Names of instants that an import wrote and that raise no event.
    silent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Moved:
    """A user's current instant, and whether it was written now and raised its event."""

    at: datetime
    raised: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """The number of users that an import created and updated."""

    created: int
    updated: int


def import_users(
    connection: sa.Connection,
    small_app_id: int,
    models: Sequence[UserModel],
    *,
    raises_events: bool = False,
) -> Imported:
    """Insert or update users; return how many of each. Other users stay unchanged.

    Fields that a row omits keep their values. Named groups replace the user's groups and are
    created if missing. A new instant raises an event only with `raises_events`; an unchanged one
    keeps its flag.
    """
    for some in parts_of([model.id for model in models], BATCH):
        # Locked, so that an instant that the application writes meanwhile is not overwritten.
        chosen = (users.c.small_app_id == small_app_id) & users.c.id.in_(some)
        connection.execute(
            sa.select(users.c.id).where(chosen).order_by(users.c.id).with_for_update()
        )
    now = read_clock(connection)
    known = by_ids(connection, small_app_id, [model.id for model in models])
    rows = [
        _row(small_app_id, model, known.get(model.id), now)
        | _silence(model, known.get(model.id), raises_events=raises_events)
        for model in models
    ]
    upsert(connection, users, rows)
    _replace_groups(
        connection, small_app_id, [one for one in models if "groups" in one.model_fields_set]
    )
    updated = sum(model.id in known for model in models)
    return Imported(created=len(models) - updated, updated=updated)


def never_activated(connection: sa.Connection, small_app_id: int, ids: Sequence[str]) -> int:
    """Return how many of these users never activated the account."""
    its_own = (users.c.small_app_id == small_app_id) & users.c.activated_at.is_(None)
    count = sa.select(sa.func.count()).where(its_own)
    return sum(
        connection.execute(count.where(users.c.id.in_(some))).scalar_one()
        for some in parts_of(ids, BATCH)
    )


def add_groups(connection: sa.Connection, small_app_id: int, names: Sequence[str]) -> None:
    """Create missing groups."""
    if names:
        rows = [{"small_app_id": small_app_id, "name": name} for name in names]
        connection.execute(insert_ignoring(connection, groups), rows)


def remove(connection: sa.Connection, small_app_id: int, id: str) -> None:
    """Remove a user with the memberships; operations about the user stay."""
    for table, its_id in ((group_members, group_members.c.user_id), (users, users.c.id)):
        its = (table.c.small_app_id == small_app_id, its_id == id)
        connection.execute(sa.delete(table).where(*its))


def page(connection: sa.Connection, small_app_id: int, after: str | None, limit: int) -> list[User]:
    """Return up to `limit` users of the small app, by id; those after the id `after`."""
    chosen = users.c.small_app_id == small_app_id
    if after is not None:
        chosen &= users.c.id > after
    return _users(connection, small_app_id, chosen, limit)


def find(connection: sa.Connection, small_app_id: int, id: str) -> User | None:
    """Return the user of that id, or None."""
    return by_ids(connection, small_app_id, [id]).get(id)


def by_ids(connection: sa.Connection, small_app_id: int, ids: Sequence[str]) -> dict[str, User]:
    """Return those of the users that exist, by id."""
    its_own = users.c.small_app_id == small_app_id
    return {
        user.id: user
        for some in parts_of(ids, BATCH)
        for user in _users(connection, small_app_id, its_own & users.c.id.in_(some))
    }


def add(connection: sa.Connection, small_app_id: int, model: UserModel) -> bool:
    """Store a new user, whose instants raise their events; False if the id is taken."""
    row = _row(small_app_id, model, None, read_clock(connection))
    added = insert_ignoring(connection, users).values(row).returning(users.c.id)
    if connection.execute(added).first() is None:
        return False
    _replace_groups(connection, small_app_id, [model])
    return True


def move(
    connection: sa.Connection, small_app_id: int, id: str, name: str, at: datetime
) -> Moved | None:
    """Write a user's `activated_at` or `last_seen_at`, which raises its event.

    An older instant does not replace a newer one. An instant that an import wrote silently raises
    its event now. Returns None for an unknown user.
    """
    column, is_silent = users.c[name], users.c[SILENT[name]]
    chosen = (users.c.small_app_id == small_app_id) & (users.c.id == id)
    is_new = sa.or_(column.is_(None), column < at, sa.and_(column == at, is_silent))
    moved = sa.update(users).where(chosen, is_new).values({name: at, SILENT[name]: False})
    raised = connection.execute(moved).rowcount == 1
    found = connection.execute(sa.select(column).where(chosen)).one_or_none()
    return None if found is None else Moved(found[0], raised)


def group_sizes(
    connection: sa.Connection, small_app_id: int, after: str | None, limit: int
) -> Sequence[Any]:
    """Return up to `limit` groups of the small app, each with the number of its `members`.

    By name; those after the name `after`.
    """
    its_own = group_members.c.small_app_id == groups.c.small_app_id
    in_group = its_own & (group_members.c.group_name == groups.c.name)
    members = sa.select(sa.func.count()).where(in_group).scalar_subquery()
    query = sa.select(groups.c.name, members.label("members"))
    query = query.where(groups.c.small_app_id == small_app_id)
    if after is not None:
        query = query.where(groups.c.name > after)
    return connection.execute(query.order_by(groups.c.name).limit(limit)).all()


def recipients_of(
    connection: sa.Connection, small_app_id: int, rule: RecipientFilterModel
) -> list[Recipient]:
    """Return the users that `rule` selects now, by id; it ignores unknown users and groups."""
    named = (users.c.small_app_id == small_app_id) & is_named(small_app_id, rule)
    return [
        as_recipient(user) for user in _users(connection, small_app_id, named) if rule.selects(user)
    ]


def as_recipient(user: User) -> Recipient:
    """Return a user as a recipient."""
    return Recipient(id=user.id, address=user.email or None, name=user.name)


def _users(
    connection: sa.Connection,
    small_app_id: int,
    chosen: sa.ColumnElement[bool],
    limit: int | None = None,
) -> list[User]:
    query = sa.select(users).where(chosen).order_by(users.c.id).limit(limit)
    rows = connection.execute(query).all()
    theirs = group_members.c.user_id.in_(query.with_only_columns(users.c.id))
    memberships = groups_of(connection, small_app_id, theirs)
    return [
        User(
            id=row.id,
            email=row.email or "",
            name=row.name,
            active=row.active,
            created_at=row.created_at,
            activated_at=row.activated_at,
            last_seen_at=row.last_seen_at,
            groups=memberships.get(row.id, frozenset()),
            silent=frozenset(name for name, flag in SILENT.items() if getattr(row, flag)),
        )
        for row in rows
    ]


def _row(small_app_id: int, model: UserModel, known: User | None, now: datetime) -> dict[str, Any]:
    given = model.model_fields_set
    row: dict[str, Any] = {"small_app_id": small_app_id, "id": model.id}
    for name in ("email", "name", "active", "created_at", "activated_at", "last_seen_at"):
        source = model if known is None or name in given else known
        row[name] = getattr(source, name)
    row["created_at"] = row["created_at"] or now
    return row


def _silence(model: UserModel, known: User | None, *, raises_events: bool) -> dict[str, bool]:
    """Return the flags of a user's instants that raise no event."""
    kept = known.silent if known is not None else frozenset()
    given = model.model_fields_set

    def is_new(name: str) -> bool:
        if known is None:
            return True
        return name in given and getattr(model, name) != getattr(known, name)

    return {
        flag: not raises_events if is_new(name) else name in kept for name, flag in SILENT.items()
    }


def _replace_groups(
    connection: sa.Connection, small_app_id: int, models: Sequence[UserModel]
) -> None:
    names = sorted({group for model in models for group in model.groups})
    add_groups(connection, small_app_id, names)
    for some in parts_of([model.id for model in models], BATCH):
        connection.execute(
            sa.delete(group_members).where(
                group_members.c.small_app_id == small_app_id, group_members.c.user_id.in_(some)
            )
        )
    rows = [
        {"small_app_id": small_app_id, "group_name": group, "user_id": model.id}
        for model in models
        for group in model.groups
    ]
    if rows:
        connection.execute(sa.insert(group_members), rows)
