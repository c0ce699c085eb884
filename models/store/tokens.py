"""Store tokens of the HTTP API, and links that sign in; only a hash of each is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any

import sqlalchemy as sa

from models.errors import NotFound
from models.roles import Role, TokenKind
from models.sql import database_now
from models.store.scope import Scope
from models.tables import small_apps, tokens

PREFIXES = {TokenKind.TOKEN: "mbt", TokenKind.LINK: "mbl"}
# How long a link that ended is kept.
KEPT_FOR = timedelta(days=30)
_parents = tokens.alias("parents")


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
            hash=hash_of(text),
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


def locked(connection: sa.Connection, id: str, scope: Scope) -> sa.RowMapping:
    """Return a valid token of the scope with its `app`, locked. Raises NotFound."""
    is_it = (tokens.c.id == id) & (tokens.c.kind == TokenKind.TOKEN)
    its_own = valid(*tokens.c, small_apps.c.name.label("app")).where(is_it)
    query = its_own.where(scope.has(tokens.c.small_app_id)).with_for_update(of=tokens)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise unknown(id)
    return row


def rotate(
    connection: sa.Connection, id: str, scope: Scope, author: str, grace: timedelta | None
) -> tuple[sa.RowMapping, str, str]:
    """Store a token that may what another of the scope may; return that one, its id and its text.

    The old one is revoked, or ends after `grace`. Raises NotFound if it is not valid.
    """
    old = locked(connection, id, scope)
    new_id, text = _drawn(TokenKind.TOKEN)
    kept = {key: old[key] for key in ("small_app_id", "role", "expires_at", "name")}
    made = {"id": new_id, "hash": hash_of(text), "created_at": database_now(), "created_by": author}
    tasks = sa.null() if old["tasks"] is None else old["tasks"]
    connection.execute(sa.insert(tokens).values({**kept, **made, "tasks": tasks}))
    ends_at = database_now(grace or 0)
    is_later = tokens.c.expires_at.is_(None) | (tokens.c.expires_at > ends_at)
    ended = {"expires_at" if grace else "revoked_at": ends_at}
    connection.execute(sa.update(tokens).where(tokens.c.id == id, is_later).values(ended))
    return old, new_id, text


def any_made(connection: sa.Connection) -> bool:
    """Return whether a token of the API was ever made, revoked ones included."""
    query = sa.select(tokens.c.id).where(tokens.c.kind == TokenKind.TOKEN).limit(1)
    return connection.execute(query).first() is not None


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
        .order_by(*NEWEST_FIRST)
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
NEWEST_FIRST = tuple(column.desc() for column in _IN_ORDER)
_OF_APP = small_apps.c.id == tokens.c.small_app_id
_SHOWN = (
    *(column for column in tokens.c if column.name not in {"hash", "small_app_id"}),
    small_apps.c.name.label("app"),
)


def valid(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
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


def hash_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()
