"""Store tokens of the HTTP API, and links that sign in; only a hash of each is kept.

A browser that is signed in has a cookie that names its token. The hash of the token is the key that
signs the cookie: nothing is stored for it, and it opens nothing once the token is revoked.
"""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any

import sqlalchemy as sa

from models.errors import NotFound
from models.roles import PERMITS, Permission, Role, TokenKind
from models.sql import database_now
from models.store.scope import Scope
from models.tables import small_apps, tokens

PREFIXES = {TokenKind.TOKEN: "mbt", TokenKind.LINK: "mbl"}
# The last use is recorded to this precision, to write one row less with each request.
USED_WITHIN = timedelta(minutes=1)
# How long a browser stays signed in.
SIGNED_IN_FOR = timedelta(hours=12)
# How long a link that ended is kept.
KEPT_FOR = timedelta(days=30)
_NO_HASH = sha256(b"").hexdigest()
_COOKIE = re.compile("mbs_([0-9a-f]{12})_([0-9]{10})_([0-9a-f]{64})")
_parents = tokens.alias("parents")


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


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token to be made, for the whole installation or for one small app."""

    role: Role
    small_app_id: int | None
    lifetime: timedelta | None
    author: str
    kind: TokenKind = TokenKind.TOKEN
    parent: str | None = None
    name: str | None = None
    tasks: tuple[str, ...] | None = None


def create(connection: sa.Connection, wanted: TokenRequest) -> tuple[str, str]:
    """Store a new token; return its id and the token itself, which is kept nowhere."""
    id, text = _drawn(wanted.kind)
    expires_at = sa.null() if wanted.lifetime is None else database_now(wanted.lifetime)
    connection.execute(
        sa.insert(tokens).values(
            id=id,
            small_app_id=wanted.small_app_id,
            role=wanted.role,
            hash=_hash(text),
            created_at=database_now(),
            created_by=wanted.author,
            expires_at=expires_at,
            kind=wanted.kind,
            parent=wanted.parent,
            name=wanted.name,
            tasks=sa.null() if wanted.tasks is None else list(wanted.tasks),
        )
    )
    return id, text


def rotate(
    connection: sa.Connection, id: str, scope: Scope, author: str, grace: timedelta | None
) -> tuple[sa.RowMapping, str, str]:
    """Store a token that may what another of the scope may; return that one, its id and its text.

    The old one is revoked, or ends after `grace`. Raises NotFound if it is not valid.
    """
    its_own = (tokens.c.id == id) & (tokens.c.kind == TokenKind.TOKEN)
    valid = _valid(*tokens.c, small_apps.c.name.label("app")).where(its_own)
    locked = valid.where(scope.has(tokens.c.small_app_id)).with_for_update(of=tokens)
    old = connection.execute(locked).mappings().one_or_none()
    if old is None:
        raise unknown(id)
    new_id, text = _drawn(TokenKind.TOKEN)
    kept = {key: old[key] for key in ("small_app_id", "role", "expires_at", "name")}
    made = {"id": new_id, "hash": _hash(text), "created_at": database_now(), "created_by": author}
    tasks = sa.null() if old["tasks"] is None else old["tasks"]
    connection.execute(sa.insert(tokens).values({**kept, **made, "tasks": tasks}))
    ends_at = database_now(grace or 0)
    is_later = tokens.c.expires_at.is_(None) | (tokens.c.expires_at > ends_at)
    ended = {"expires_at" if grace else "revoked_at": ends_at}
    connection.execute(sa.update(tokens).where(its_own, is_later).values(ended))
    return old, new_id, text


def any_made(connection: sa.Connection) -> bool:
    """Return whether a token of the API was ever made, revoked ones included."""
    query = sa.select(tokens.c.id).where(tokens.c.kind == TokenKind.TOKEN).limit(1)
    return connection.execute(query).first() is not None


def bearer_of(connection: sa.Connection, text: str) -> tuple[Bearer, bool] | None:
    """Return the bearer of a valid token, and whether to note its use.

    A token is not valid if it is unknown, wrong, expired or revoked, or if its small app is
    deleted. The time that this takes reveals nothing about the secrets.
    """
    row = connection.execute(_tokens(), {"its_id": _id_in(text, TokenKind.TOKEN)}).one_or_none()
    is_right = hmac.compare_digest(_hash(text), _NO_HASH if row is None else row.hash)
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
    of_app = tokens.c.small_app_id.is_not(None)
    its = _found((tokens.c.name == name) & (tokens.c.kind == TokenKind.TOKEN))
    may_look = tokens.c.role != Role.WORKER
    query = its.where(may_look).order_by(of_app, *_NEWEST_FIRST).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else (_bearer(row), row.is_stale)


def cookie_of(connection: sa.Connection, id: str) -> str:
    """Return a cookie that signs a browser in by a token."""
    query = sa.select(tokens.c.hash, database_now(SIGNED_IN_FOR).label("ends_at"))
    row = connection.execute(query.where(tokens.c.id == id)).one()
    ends = str(int(row.ends_at.timestamp()))
    return f"mbs_{id}_{ends}_{_signature(row.hash, id, ends)}"


@cache
def _tokens() -> sa.Select[Any]:
    """Return the statement that finds a token; it is made once, for each request runs it."""
    return _by_id(tokens.c.kind == TokenKind.TOKEN)


@cache
def _signed_in() -> sa.Select[Any]:
    """Return the statement that finds the token, or the used link, of a cookie."""
    is_used = (tokens.c.kind == TokenKind.TOKEN) | tokens.c.last_used_at.is_not(None)
    ends_at = sa.bindparam("ends_at", type_=tokens.c.expires_at.type)
    return _by_id(is_used & (ends_at > database_now()))


def _by_id(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return _found(condition & (tokens.c.id == sa.bindparam("its_id")))


def _found(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    is_stale = tokens.c.last_used_at.is_(None) | (
        tokens.c.last_used_at < database_now(-USED_WITHIN)
    )
    query = _valid(
        tokens.c.id,
        tokens.c.kind,
        tokens.c.role,
        tokens.c.hash,
        tokens.c.parent,
        tokens.c.name,
        tokens.c.tasks,
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
    used = sa.update(tokens).where(tokens.c.id == id)
    connection.execute(used.values(last_used_at=database_now()))


def use_link(connection: sa.Connection, text: str) -> str | None:
    """Use a valid link up; return the id of the token that it signs in by, or None.

    A link of no token is one itself from now on, without a text that opens it: whoever has the text
    of the link cannot sign cookies.
    """
    link = (tokens.c.kind == TokenKind.LINK) & tokens.c.last_used_at.is_(None)
    id = _id_in(text, TokenKind.LINK)
    row = connection.execute(_by_id(link), {"its_id": id}).one_or_none()
    is_right = hmac.compare_digest(_hash(text), _NO_HASH if row is None else row.hash)
    if row is None or not is_right:
        return None
    used = {
        "hash": _hash(token_urlsafe(32)),
        "last_used_at": database_now(),
        "expires_at": database_now(SIGNED_IN_FOR),
    }
    is_first = connection.execute(sa.update(tokens).where(link, tokens.c.id == id).values(used))
    its: str = row.parent or id
    return its if is_first.rowcount == 1 else None


def prune(connection: sa.Connection) -> int:
    """Delete the links that ended long ago; return how many."""
    ended_at = sa.func.coalesce(tokens.c.revoked_at, tokens.c.expires_at)
    old = (tokens.c.kind == TokenKind.LINK) & (ended_at < database_now(-KEPT_FOR))
    return connection.execute(sa.delete(tokens).where(old)).rowcount


def listed(
    connection: sa.Connection, scope: Scope, after: str | None, limit: int
) -> Sequence[sa.RowMapping]:
    """Return up to `limit` tokens of the scope that are not revoked, without hashes.

    The newest first; those after the token of the id `after`, which may be revoked by now.
    """
    query = (
        sa.select(*_SHOWN)
        .outerjoin(small_apps, _OF_APP)
        .where(tokens.c.kind == TokenKind.TOKEN, scope.has(tokens.c.small_app_id))
        .where(tokens.c.revoked_at.is_(None))
        .order_by(*_NEWEST_FIRST)
        .limit(limit)
    )
    if after is not None:
        one = tokens.alias()
        place = (sa.select(one.c[column.name]).where(one.c.id == after) for column in _IN_ORDER)
        last = (column.scalar_subquery() for column in place)
        query = query.where(sa.tuple_(*_IN_ORDER) < sa.tuple_(*last))
    return connection.execute(query).mappings().all()


def revoke(connection: sa.Connection, id: str, scope: Scope) -> tuple[TokenKind, int | None]:
    """Revoke a token or link of the scope, at once; return its kind and small app.

    The cookies that name it end with it, as do its unused links. Raises NotFound.
    """
    its_own = (tokens.c.id == id) & tokens.c.revoked_at.is_(None)
    revoked = (
        sa.update(tokens)
        .where(its_own, scope.has(tokens.c.small_app_id))
        .values(revoked_at=database_now())
        .returning(tokens.c.kind, tokens.c.small_app_id)
    )
    row = connection.execute(revoked).one_or_none()
    if row is None:
        raise unknown(id)
    return TokenKind(row.kind), row.small_app_id


def unknown(id: str) -> NotFound:
    """Return the error of an id that no valid token has."""
    return NotFound(f"no token has the id {id!r}; see `minutebook token list`")


# The order of a list is the opposite.
_IN_ORDER = (tokens.c.created_at, tokens.c.id)
_NEWEST_FIRST = tuple(column.desc() for column in _IN_ORDER)
_OF_APP = small_apps.c.id == tokens.c.small_app_id
_SHOWN = (
    *(column for column in tokens.c if column.name not in {"hash", "small_app_id"}),
    small_apps.c.name.label("app"),
)


def _valid(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return the query of tokens that are valid now, as their parents and small apps are."""
    has_app = tokens.c.small_app_id.is_(None) | (
        small_apps.c.name.is_not(None) & small_apps.c.deleted_at.is_(None)
    )
    has_parent = tokens.c.parent.is_(None) | (_parents.c.id.is_not(None) & _lives(_parents))
    return (
        sa.select(*columns)
        .outerjoin(small_apps, _OF_APP)
        .outerjoin(_parents, _parents.c.id == tokens.c.parent)
        .where(_lives(tokens), has_app, has_parent)
    )


def _lives(one: sa.FromClause) -> sa.ColumnElement[bool]:
    expires_at = one.c.expires_at
    return one.c.revoked_at.is_(None) & (expires_at.is_(None) | (expires_at > database_now()))


def _drawn(kind: TokenKind) -> tuple[str, str]:
    """Return a new id and the text that it is part of."""
    id = token_hex(6)
    return id, f"{PREFIXES[kind]}_{id}_{token_urlsafe(32)}"


def _signature(key: str, id: str, ends: str) -> str:
    return hmac.new(key.encode(), f"cookie {id} {ends}".encode(), sha256).hexdigest()


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _id_in(text: str, kind: TokenKind) -> str:
    prefix, _, rest = text.partition("_")
    id, _, _ = rest.partition("_")
    # Not every text can be sent to every database.
    return id if prefix == PREFIXES[kind] and id.isascii() and id.isalnum() else ""
