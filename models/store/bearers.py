"""Find the bearer of a token, of a browser's cookie or of a link, and note its use.

A browser that is signed in has a cookie that names its token. The hash of the token is the key that
signs the cookie: nothing is stored for it, and it opens nothing once the token is revoked.
"""

import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any

import sqlalchemy as sa

from models.roles import PERMITS, Permission, Role, TokenKind
from models.sql import database_now
from models.store import tokens
from models.tables import small_apps
from models.tables import tokens as table

# The last use is recorded to this precision, to write one row less with each request.
USED_WITHIN = timedelta(minutes=1)
# How long a browser stays signed in.
SIGNED_IN_FOR = timedelta(hours=12)
_NO_HASH = sha256(b"").hexdigest()
_COOKIE = re.compile("mbs_([0-9a-f]{12})_([0-9]{10})_([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Bearer:
    """The bearer of a valid token; `app_name` is None for the whole installation."""

    # Empty for a person whom a proxy names, and for a worker of this machine.
    token_id: str
    role: Role
    app_name: str | None
    # The author of what the bearer changes.
    actor: str
    # The tasks that a worker follows with it, by patterns; None for a worker of jobs.
    tasks: tuple[str, ...] | None = None

    def may(self, permission: Permission) -> bool:
        """Return whether it permits something: a worker takes jobs, or follows tasks."""
        if permission not in PERMITS[self.role]:
            return False
        other = Permission.FOLLOW if self.tasks is None else Permission.WORK
        return self.role is not Role.WORKER or permission is not other


def bearer_of(connection: sa.Connection, text: str) -> tuple[Bearer, bool] | None:
    """Return the bearer of a valid token, and whether to note its use.

    A token is not valid if it is unknown, wrong, expired or revoked, or if its small app is
    deleted. The time that this takes reveals nothing about the secrets.
    """
    row = connection.execute(_tokens(), {"its_id": _id_in(text, TokenKind.TOKEN)}).one_or_none()
    is_right = hmac.compare_digest(tokens.hash_of(text), _NO_HASH if row is None else row.hash)
    return (_bearer(row), row.is_stale) if row is not None and is_right else None


def bearer_by_cookie(connection: sa.Connection, text: str) -> tuple[Bearer, bool] | None:
    """Return the bearer of the valid token that a valid cookie names, and whether to note it."""
    form = _COOKIE.fullmatch(text)
    if form is None:
        return None
    id, ends, signature = form.groups()
    named = {"its_id": id, "ends_at": datetime.fromtimestamp(int(ends), UTC)}
    row = connection.execute(_signed_in(), named).one_or_none()
    expected = _signature(_NO_HASH if row is None else row.hash, id, ends)
    is_right = hmac.compare_digest(expected, signature)
    return (_bearer(row), row.is_stale) if row is not None and is_right else None


def bearer_by_name(connection: sa.Connection, name: str) -> tuple[Bearer, bool] | None:
    """Return the bearer of the valid token of a person, and whether to note its use.

    Of several it is one of the installation, and of those the newest.
    """
    of_app = table.c.small_app_id.is_not(None)
    its = _found((table.c.name == name) & (table.c.kind == TokenKind.TOKEN))
    may_look = table.c.role != Role.WORKER
    query = its.where(may_look).order_by(of_app, *tokens.NEWEST_FIRST).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else (_bearer(row), row.is_stale)


def cookie_of(connection: sa.Connection, id: str) -> str:
    """Return a cookie that signs a browser in by a token."""
    query = sa.select(table.c.hash, database_now(SIGNED_IN_FOR).label("ends_at"))
    row = connection.execute(query.where(table.c.id == id)).one()
    ends = str(int(row.ends_at.timestamp()))
    return f"mbs_{id}_{ends}_{_signature(row.hash, id, ends)}"


@cache
def _tokens() -> sa.Select[Any]:
    """Return the statement that finds a token; it is made once, for each request runs it."""
    return _by_id(table.c.kind == TokenKind.TOKEN)


@cache
def _signed_in() -> sa.Select[Any]:
    """Return the statement that finds the token, or the used link, of a cookie."""
    is_used = (table.c.kind == TokenKind.TOKEN) | table.c.last_used_at.is_not(None)
    ends_at = sa.bindparam("ends_at", type_=table.c.expires_at.type)
    return _by_id(is_used & (ends_at > database_now()))


def _by_id(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return _found(condition & (table.c.id == sa.bindparam("its_id")))


def _found(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    is_stale = table.c.last_used_at.is_(None) | (table.c.last_used_at < database_now(-USED_WITHIN))
    query = tokens.valid(
        table.c.id,
        table.c.kind,
        table.c.role,
        table.c.hash,
        table.c.parent,
        table.c.name,
        table.c.tasks,
        small_apps.c.name.label("app_name"),
        is_stale.label("is_stale"),
    )
    return query.where(condition)


def _bearer(row: sa.Row[Any]) -> Bearer:
    named = f" ({row.name})" if row.name else ""
    tasks = None if row.tasks is None else tuple(row.tasks)
    return Bearer(row.id, Role(row.role), row.app_name, f"{row.kind} {row.id}{named}", tasks)


def note_use(connection: sa.Connection, id: str) -> None:
    """Record that a token was used now."""
    used = sa.update(table).where(table.c.id == id)
    connection.execute(used.values(last_used_at=database_now()))


def use_link(connection: sa.Connection, text: str) -> str | None:
    """Use a valid link up; return the id of the token that it signs in by, or None.

    A link of no token is one itself from now on, without a text that opens it: whoever has the text
    of the link cannot sign cookies.
    """
    link = (table.c.kind == TokenKind.LINK) & table.c.last_used_at.is_(None)
    id = _id_in(text, TokenKind.LINK)
    row = connection.execute(_by_id(link), {"its_id": id}).one_or_none()
    is_right = hmac.compare_digest(tokens.hash_of(text), _NO_HASH if row is None else row.hash)
    if row is None or not is_right:
        return None
    used = {
        "hash": tokens.hash_of(token_urlsafe(32)),
        "last_used_at": database_now(),
        "expires_at": database_now(SIGNED_IN_FOR),
    }
    is_first = connection.execute(sa.update(table).where(link, table.c.id == id).values(used))
    its: str = row.parent or id
    return its if is_first.rowcount == 1 else None


def _signature(key: str, id: str, ends: str) -> str:
    return hmac.new(key.encode(), f"cookie {id} {ends}".encode(), sha256).hexdigest()


def _id_in(text: str, kind: TokenKind) -> str:
    prefix, _, rest = text.partition("_")
    id, _, _ = rest.partition("_")
    # Not every text can be sent to every database.
    return id if prefix == tokens.PREFIXES[kind] and id.isascii() and id.isalnum() else ""
