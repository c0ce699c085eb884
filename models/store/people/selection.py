"""Which users a filter of recipients selects, decided by the database, and which names exist."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.sql import in_many
from models.tables import group_members, groups, users


def keeps_one_of(
    connection: sa.Connection, small_app_id: int, group: str, rule: RecipientFilterModel
) -> bool:
    """Return whether the flags of `rule` keep a user of a group; `all` is every user."""
    kept = sa.select(users.c.id).where(_is_kept(small_app_id, rule))
    if group != EVERYBODY:
        kept = kept.where(_is_member(small_app_id, [group]))
    return connection.execute(kept.limit(1)).first() is not None


def is_named(small_app_id: int, rule: RecipientFilterModel) -> sa.ColumnElement[bool]:
    """Return the condition that `rule` names a user of the small app, or a group of the user."""
    if EVERYBODY in rule.groups:
        return sa.true()
    return sa.or_(users.c.id.in_(rule.users), _is_member(small_app_id, rule.groups))


def _is_member(small_app_id: int, names: Sequence[str]) -> sa.ColumnElement[bool]:
    members = sa.select(group_members.c.user_id).where(
        group_members.c.small_app_id == small_app_id, group_members.c.group_name.in_(names)
    )
    return users.c.id.in_(members)


def _is_kept(small_app_id: int, rule: RecipientFilterModel) -> sa.ColumnElement[bool]:
    """Return what `RecipientFilterModel.keeps` decides, of users of the small app."""
    is_active = users.c.active.is_(sa.true())
    is_activated = users.c.activated_at.is_not(None)
    conditions = [users.c.small_app_id == small_app_id]
    if rule.only_inactive_users:
        conditions.append(sa.not_(is_active))
    if rule.only_inactivated_users:
        conditions.append(sa.not_(is_activated))
    if not rule.keeps_inactive:
        conditions.append(is_active)
    if not rule.keeps_inactivated:
        conditions.append(is_activated)
    return sa.and_(*conditions)


def groups_of(
    connection: sa.Connection, small_app_id: int, chosen: sa.ColumnElement[bool]
) -> dict[str, frozenset[str]]:
    """Return the groups of each chosen member of the small app's groups, by user id."""
    members = sa.select(group_members.c.user_id, group_members.c.group_name)
    found: dict[str, frozenset[str]] = {}
    for user, group in connection.execute(
        members.where(group_members.c.small_app_id == small_app_id, chosen)
    ):
        found[user] = found.get(user, frozenset()) | {group}
    return found


def groups_among(connection: sa.Connection, small_app_id: int, names: Collection[str]) -> set[str]:
    """Return those of these names that a group of the small app has; `all` is not one of them."""
    found = sa.select(groups.c.name).where(
        groups.c.small_app_id == small_app_id, in_many(connection, groups.c.name, sorted(names))
    )
    return set(connection.execute(found).scalars())


def first_groups(connection: sa.Connection, small_app_id: int, limit: int) -> list[str]:
    """Return the names of up to `limit` groups of the small app, in order."""
    found = sa.select(groups.c.name).where(groups.c.small_app_id == small_app_id)
    return list(connection.execute(found.order_by(groups.c.name).limit(limit)).scalars())


def first_ids(connection: sa.Connection, small_app_id: int, limit: int) -> list[str]:
    """Return the ids of up to `limit` users of the small app, in order."""
    found = sa.select(users.c.id).where(users.c.small_app_id == small_app_id)
    return list(connection.execute(found.order_by(users.c.id).limit(limit)).scalars())
