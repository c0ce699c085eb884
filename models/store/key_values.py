"""Store single values of the installation, each under a key."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.sql import insert_ignoring, upsert
from models.stored import document_in, instant_in
from models.tables import installation

LAST_NOW = "last_tick_now"
# The version of the kernel and the tz release that decide: `scheduler/tz_release.py`.
KERNEL = "kernel_version"
TZ_RELEASE = "tz_release"
CLOCK_SET_BACK = "clock_set_back"
# The last attempt that lacked its claim: `{"at": …, "operation": …, "attempt": …, "how": …}`.
WENT_BACK = "database_went_back"
DOWNTIME = "downtime"
# The last clean stop of a daemon: `{"daemon": …, "at": …}`.
STOPPED = "daemon_stopped"
# When a web process last said that it lives, and since when there was no gap: `{"seen": …,
# "since": …}`.
WEB = "web_lives"
# The queues of the Celery application that actions send to: `celery_queues.py`.
CELERY_QUEUES = "celery_queues"
# The instant up to which all event actions are decided; absent before the first decision.
EVENTS_DECIDED = "events_decided_until"


def value_query(key: str) -> sa.Select[Any]:
    """Return the query of the value under `key`."""
    return sa.select(installation.c.value).where(installation.c.key == key)


def value(connection: sa.Connection, key: str) -> str | None:
    """Return the installation's value under `key`, or None."""
    return connection.execute(value_query(key)).scalar_one_or_none()


def hold_value(
    connection: sa.Connection, key: str, *, read: bool = False, key_share: bool = False
) -> str | None:
    """Return the value under `key`, its row locked until this transaction ends, or None.

    `read` and `key_share` are those of `with_for_update`. SQLite locks nothing here.
    """
    held = value_query(key).with_for_update(read=read, key_share=key_share)
    return connection.execute(held).scalar_one_or_none()


def values(
    connection: sa.Connection, keys: Sequence[str], *, is_held: bool = False
) -> dict[str, str]:
    """Return the values under `keys` that exist, by key.

    If they are held, no other transaction that holds one by `hold_value` changes it meanwhile.
    """
    query = sa.select(installation.c.key, installation.c.value)
    query = query.where(installation.c.key.in_(keys)).order_by(installation.c.key)
    held = query.with_for_update(read=True, key_share=True) if is_held else query
    return {row.key: row.value for row in connection.execute(held)}


def json_value(connection: sa.Connection, key: str) -> dict[str, Any]:
    """Return the installation's JSON object under `key`; empty if missing or invalid."""
    text = value(connection, key)
    return {} if text is None else document_in(text)


def set_back_in(text: str | None) -> tuple[datetime, timedelta] | None:
    """Return when the clock was last set back, and by how much; None if missing or unreadable."""
    stored = document_in(text or "{}")
    at, seconds = instant_in(stored.get("at")), stored.get("seconds")
    if at is None or not isinstance(seconds, int | float):
        return None
    try:
        return at, timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None


def instant_value(connection: sa.Connection, key: str) -> datetime | None:
    """Return the installation's instant under `key`, or None."""
    return instant_in(value(connection, key))


def move_value(connection: sa.Connection, key: str, seen: str | None, value: str) -> bool:
    """Replace a value whose value is `seen` (None: missing); False if it has changed."""
    if seen is None:
        first = insert_ignoring(connection, installation).values(key=key, value=value)
        added = connection.execute(first.returning(installation.c.key))
        return added.first() is not None
    # As it is: a hand may have written what no store of ours would write.
    is_seen = sa.type_coerce(installation.c.value, sa.Text) == seen
    moved = sa.update(installation).where(installation.c.key == key, is_seen)
    return connection.execute(moved.values(value=value)).rowcount == 1


def set_value(connection: sa.Connection, key: str, value: str) -> None:
    """Store a value of the installation."""
    upsert(connection, installation, [{"key": key, "value": value}])
