"""Small apps: how they stand in lists, their documents, how far they are trusted."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.errors import NotFound
from models.hints import unknown_name
from models.sql import database_now, in_many
from models.store import pauses
from models.stored import document_in
from models.tables import actions, small_apps, users
from models.trust import Trust

# The owner of the actions that every small app gets by itself.
GIVEN_OWNER = "minutebook"
# The columns of a SmallApp, in its order.
_COLUMNS = (small_apps.c.id, small_apps.c.name, small_apps.c.zone)
_SHOWN = sa.select(*_COLUMNS)


def get(connection: sa.Connection, name: str) -> SmallApp:
    """Return the small app `name`. Raises NotFound with the nearest known name."""
    found = _SHOWN.where(small_apps.c.name == name, small_apps.c.deleted_at.is_(None))
    row = connection.execute(found).one_or_none()
    if row is None:
        known = [app.name for app in listed(connection)]
        raise NotFound(f'small app "{name}" {unknown_name("small app", name, known)}')
    return SmallApp(*row)


def by_id(connection: sa.Connection, small_app_id: int) -> SmallApp:
    """Return the small app with this id, deleted or not. Raises NotFound."""
    return SmallApp(*_its(connection, small_app_id, *_COLUMNS))


def by_ids(connection: sa.Connection, ids: Collection[int]) -> dict[int, SmallApp]:
    """Return the small apps with these ids, deleted or not, by id."""
    found = connection.execute(_SHOWN.where(in_many(connection, small_apps.c.id, ids)))
    return {row.id: SmallApp(*row) for row in found}


def trust_of(connection: sa.Connection, small_app_id: int) -> Trust:
    """Return how far the small app is trusted. Raises NotFound."""
    row = _its(connection, small_app_id, small_apps.c.trust, small_apps.c.name)
    trust: Trust = replace(row.trust, app=row.name)
    return trust


def set_trust(connection: sa.Connection, small_app_id: int, trust: Trust) -> None:
    """Store how far the small app is trusted."""
    its = sa.update(small_apps).where(small_apps.c.id == small_app_id)
    connection.execute(its.values(trust=trust))


def listed(connection: sa.Connection) -> list[SmallApp]:
    """Return all small apps by name."""
    found = _SHOWN.where(small_apps.c.deleted_at.is_(None)).order_by(small_apps.c.name)
    return [SmallApp(*row) for row in connection.execute(found)]


def page(
    connection: sa.Connection, after: str | None, limit: int, only: str | None = None
) -> list[tuple[SmallApp, str | None]]:
    """Return up to `limit` small apps, by name, each with its document's owner.

    Those after the name `after`; with `only` at most the one of that name.
    """
    names_one = small_apps.c.document.contains('"owner"')
    query = _SHOWN.add_columns(sa.case((names_one, small_apps.c.document)))
    query = query.where(small_apps.c.deleted_at.is_(None))
    if only is not None:
        query = query.where(small_apps.c.name == only)
    if after is not None:
        query = query.where(small_apps.c.name > after)
    found = connection.execute(query.order_by(small_apps.c.name).limit(limit))
    return [(SmallApp(id, name, zone), _read(text).get("owner")) for id, name, zone, text in found]


def never_maintained(connection: sa.Connection) -> list[SmallApp]:
    """Return the small apps that never had an action `maintenance`, by name."""
    never = (small_apps.c.deleted_at.is_(None), small_apps.c.maintained_at.is_(None))
    found = _SHOWN.where(*never).order_by(small_apps.c.name)
    return [SmallApp(*row) for row in connection.execute(found)]


def note_maintained(connection: sa.Connection, small_app_id: int) -> bool:
    """Record that the small app has its action `maintenance`; False if it was recorded."""
    never = (small_apps.c.id == small_app_id) & small_apps.c.maintained_at.is_(None)
    noted = sa.update(small_apps).where(never).values(maintained_at=database_now())
    return connection.execute(noted).rowcount == 1


def lock(connection: sa.Connection, small_app_id: int) -> None:
    """Lock the small app against changes and publishes until the transaction ends.

    Operations are recorded meanwhile: they only refer to it.
    """
    row = sa.select(small_apps.c.id).where(small_apps.c.id == small_app_id)
    connection.execute(row.with_for_update(key_share=True))


def calendars_of(connection: sa.Connection, small_app_id: int) -> dict[str, list[Any]]:
    """Return the small app's calendars by name, each a list of dates."""
    return calendars_of_each(connection, [small_app_id]).get(small_app_id, {})


def calendars_of_each(
    connection: sa.Connection, small_app_ids: Collection[int]
) -> dict[int, dict[str, list[Any]]]:
    """Return the calendars of those of these small apps that have some, by id."""
    query = sa.select(small_apps.c.id, small_apps.c.document).where(
        in_many(connection, small_apps.c.id, small_app_ids),
        small_apps.c.document.contains('"calendars"'),
    )
    return {row.id: _read(row.document).get("calendars", {}) for row in connection.execute(query)}


def document_of(connection: sa.Connection, small_app_id: int) -> dict[str, Any]:
    """Return the stored document. Raises NotFound."""
    return _read(_its(connection, small_app_id, small_apps.c.document).document)


def stored_named(
    connection: sa.Connection, name: str, *, locked: bool = False
) -> dict[str, Any] | None:
    """Return the stored document of the small app `name`; None if it is unknown or deleted.

    `locked`: it stays as it is until the transaction ends, as by
    `lock`.
    """
    query = sa.select(small_apps.c.document).where(
        small_apps.c.name == name, small_apps.c.deleted_at.is_(None)
    )
    if locked:
        query = query.with_for_update(key_share=True)
    text = connection.execute(query).scalar_one_or_none()
    return None if text is None else _read(text)


def _read(text: str | None) -> dict[str, Any]:
    return {} if text is None else document_in(text)


def settings_of(connection: sa.Connection, small_app_id: int) -> Mapping[str, Any]:
    """Return the small app's settings, immutable. Raises NotFound."""
    found: Mapping[str, Any] = read_only(document_of(connection, small_app_id).get("settings", {}))
    return found


def hold(connection: sa.Connection, small_app_id: int) -> None:
    """Lock the small app as `lock` does; raises NotFound if it is deleted."""
    its = sa.select(small_apps.c.name, small_apps.c.deleted_at).where(
        small_apps.c.id == small_app_id
    )
    row = connection.execute(its.with_for_update(key_share=True)).one()
    if row.deleted_at is not None:
        raise NotFound(f'small app "{row.name}" was deleted')


def read_only(value: Any) -> Any:
    """Return a JSON value as immutable mappings and tuples."""
    if isinstance(value, dict):
        return MappingProxyType({key: read_only(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(read_only(item) for item in value)
    return value


def deleted_ids(connection: sa.Connection) -> Sequence[int]:
    """Return the ids of the deleted small apps."""
    query = sa.select(small_apps.c.id).where(small_apps.c.deleted_at.is_not(None))
    return connection.execute(query.order_by(small_apps.c.id)).scalars().all()


def mark_deleted(connection: sa.Connection, small_app_id: int) -> None:
    """Delete a small app softly: people, documents and data stay, so that it can be restored."""
    its = sa.update(small_apps).where(small_apps.c.id == small_app_id)
    connection.execute(its.values(deleted_at=database_now()))
    pauses.end_of_app(connection, small_app_id)


def _its(connection: sa.Connection, small_app_id: int, *columns: Any) -> Any:
    """Return a row with columns of the small app with this id. Raises NotFound."""
    its = sa.select(*columns).where(small_apps.c.id == small_app_id)
    row = connection.execute(its).one_or_none()
    if row is None:
        raise NotFound(f"no small app has the id {small_app_id}")
    return row


def apps_with(connection: sa.Connection, thing: str, name: str, limit: int) -> list[str]:
    """Return up to `limit` small apps that have an `action` or `user` of this name, by name."""
    if thing == "action":
        mine = sa.select(actions.c.small_app_id).where(
            actions.c.name == name, actions.c.deleted_at.is_(None)
        )
    else:
        mine = sa.select(users.c.small_app_id).where(users.c.id == name)
    there = small_apps.c.deleted_at.is_(None) & small_apps.c.id.in_(mine)
    query = sa.select(small_apps.c.name).where(there).order_by(small_apps.c.name)
    return list(connection.execute(query.limit(limit)).scalars())
