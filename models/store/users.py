"""The users of a small app and their groups; who a filter of recipients means now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from minutehand.steps import Recipient
from models.recipients import EVERYBODY, RecipientFilterModel
from models.sql import insert_ignoring, read_clock, upsert
from models.tables import group_members, groups, users
from models.users import UserModel

BATCH = 500


@dataclass(frozen=True, slots=True)
class User:
    """A user as stored; `active` false: switched off, `activated_at` None: never activated."""

    id: str
    email: str
    name: str | None
    active: bool
    created_at: datetime
    activated_at: datetime | None
    last_seen_at: datetime | None
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Imported:
    """How many users an import made and how many it found there already."""

    created: int
    updated: int


def import_users(
    connection: sa.Connection, small_app_id: int, models: Sequence[UserModel]
) -> Imported:
    """Insert or update `models`; return how many of each. Other users stay as they are.

    What a row does not name is kept of a user who is there already. Groups that are named replace
    the user's groups, and are made when they are new. No event is raised.
    """
    now = read_clock(connection)
    known = {user.id: user for user in listed(connection, small_app_id)}
    rows = [_row(small_app_id, model, known.get(model.id), now) for model in models]
    upsert(connection, users, rows)
    _replace_groups(
        connection, small_app_id, [one for one in models if "groups" in one.model_fields_set]
    )
    updated = sum(model.id in known for model in models)
    return Imported(created=len(models) - updated, updated=updated)


def listed(connection: sa.Connection, small_app_id: int) -> list[User]:
    """Return all users of the small app, by id."""
    return _users(connection, small_app_id, users.c.small_app_id == small_app_id)


def find(connection: sa.Connection, small_app_id: int, id: str) -> User | None:
    """Return the user of that id, None where there is none."""
    chosen = (users.c.small_app_id == small_app_id) & (users.c.id == id)
    return next(iter(_users(connection, small_app_id, chosen)), None)


def user_ids(connection: sa.Connection, small_app_id: int) -> set[str]:
    """Return the ids of the small app's users."""
    found = sa.select(users.c.id).where(users.c.small_app_id == small_app_id)
    return set(connection.execute(found).scalars())


def group_names(connection: sa.Connection, small_app_id: int) -> set[str]:
    """Return the names of the small app's groups; `all` is not one of them."""
    found = sa.select(groups.c.name).where(groups.c.small_app_id == small_app_id)
    return set(connection.execute(found).scalars())


def recipients_of(
    connection: sa.Connection, small_app_id: int, rule: RecipientFilterModel
) -> list[Recipient]:
    """Return whom `rule` selects now, by id; unknown users and groups select nobody."""
    named = users.c.small_app_id == small_app_id
    if EVERYBODY not in rule.groups:
        named &= sa.or_(users.c.id.in_(rule.users), users.c.id.in_(_members(small_app_id, rule)))
    return [
        as_recipient(user) for user in _users(connection, small_app_id, named) if rule.selects(user)
    ]


def as_recipient(user: User) -> Recipient:
    """Return a user as steps send to them."""
    return Recipient(id=user.id, address=user.email or None, name=user.name)


def unknown_names(
    connection: sa.Connection, small_app_id: int, rule: RecipientFilterModel
) -> list[str]:
    """Return the users and groups that `rule` names and that the small app does not have."""
    missing_users = set(rule.users) - user_ids(connection, small_app_id)
    missing = set(rule.groups) - group_names(connection, small_app_id) - {EVERYBODY}
    return [*sorted(missing_users), *sorted(missing)]


def _members(small_app_id: int, rule: RecipientFilterModel) -> sa.Select[Any]:
    return sa.select(group_members.c.user_id).where(
        group_members.c.small_app_id == small_app_id,
        group_members.c.group_name.in_(rule.groups),
    )


def _users(
    connection: sa.Connection, small_app_id: int, chosen: sa.ColumnElement[bool]
) -> list[User]:
    rows = connection.execute(sa.select(users).where(chosen).order_by(users.c.id)).all()
    memberships: dict[str, set[str]] = {}
    found = connection.execute(
        sa.select(group_members.c.user_id, group_members.c.group_name).where(
            group_members.c.small_app_id == small_app_id,
            group_members.c.user_id.in_(sa.select(users.c.id).where(chosen)),
        )
    )
    for user_id, group in found:
        memberships.setdefault(user_id, set()).add(group)
    return [
        User(
            id=row.id,
            email=row.email or "",
            name=row.name,
            active=row.active,
            created_at=row.created_at,
            activated_at=row.activated_at,
            last_seen_at=row.last_seen_at,
            groups=frozenset(memberships.get(row.id, ())),
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


def _replace_groups(
    connection: sa.Connection, small_app_id: int, models: Sequence[UserModel]
) -> None:
    names = sorted({group for model in models for group in model.groups})
    if names:
        made = [{"small_app_id": small_app_id, "name": name} for name in names]
        connection.execute(insert_ignoring(connection, groups), made)
    for some in _batches([model.id for model in models]):
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


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]
