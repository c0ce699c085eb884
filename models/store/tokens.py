"""Store the tokens of the HTTP API; only a hash of each is kept."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any

import sqlalchemy as sa

from models.errors import NotFound
from models.roles import Role
from models.sql import database_now
from models.store.scope import Scope
from models.tables import small_apps, tokens

PREFIX = "mht"
# The last use is recorded to this precision, to write one row less with each request.
USED_WITHIN = timedelta(minutes=1)
_NO_HASH = sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Bearer:
    """The bearer of a valid token; `app_name` is None for the whole installation."""

    token_id: str
    role: Role
    app_name: str | None


def create(
    connection: sa.Connection,
    role: Role,
    small_app_id: int | None,
    lifetime: timedelta | None,
    author: str,
) -> tuple[str, str]:
    """Store a new token; return its id and the token itself, which is kept nowhere."""
    id = token_hex(6)
    text = f"{PREFIX}_{id}_{token_urlsafe(32)}"
    expires_at = sa.null() if lifetime is None else database_now(lifetime)
    connection.execute(
        sa.insert(tokens).values(
            id=id,
            small_app_id=small_app_id,
            role=role,
            hash=_hash(text),
            created_at=database_now(),
            created_by=author,
            expires_at=expires_at,
        )
    )
    return id, text


def any_made(connection: sa.Connection) -> bool:
    """Return whether a token was ever made, revoked ones included."""
    return connection.execute(sa.select(tokens.c.id).limit(1)).first() is not None


def bearer_of(connection: sa.Connection, text: str) -> tuple[Bearer, bool] | None:
    """Return the bearer of a token, and whether its use is to be noted.

    None if the token is unknown, wrong, expired or revoked, or its small app is deleted. The time
    that this takes says nothing of the secret.
    """
    row = connection.execute(_bearer(), {"its_id": _id_in(text)}).one_or_none()
    is_right = hmac.compare_digest(_hash(text), _NO_HASH if row is None else row.hash)
    if row is None or not is_right:
        return None
    bearer = Bearer(row.id, Role(row.role), row.app_name)
    return bearer, row.is_stale


@cache
def _bearer() -> sa.Select[Any]:
    """Return the statement that finds a token; it is made once, for each request runs it."""
    return _valid().where(tokens.c.id == sa.bindparam("its_id"))


def note_use(connection: sa.Connection, id: str) -> None:
    """Record that a token was used now."""
    used = sa.update(tokens).where(tokens.c.id == id)
    connection.execute(used.values(last_used_at=database_now()))


def listed(connection: sa.Connection, scope: Scope) -> Sequence[sa.RowMapping]:
    """Return the tokens of the scope that are not revoked, the newest first, without hashes."""
    shown = [column for column in tokens.c if column.name not in {"hash", "small_app_id"}]
    query = (
        sa.select(*shown, small_apps.c.name.label("app"))
        .outerjoin(small_apps, small_apps.c.id == tokens.c.small_app_id)
        .where(tokens.c.revoked_at.is_(None), scope.has(tokens.c.small_app_id))
        .order_by(tokens.c.created_at.desc(), tokens.c.id)
    )
    return connection.execute(query).mappings().all()


def revoke(connection: sa.Connection, id: str, scope: Scope) -> int | None:
    """Revoke a token of the scope, at once; return its small app. Raises NotFound."""
    its_own = (tokens.c.id == id) & tokens.c.revoked_at.is_(None)
    revoked = (
        sa.update(tokens)
        .where(its_own, scope.has(tokens.c.small_app_id))
        .values(revoked_at=database_now())
        .returning(tokens.c.small_app_id)
    )
    row = connection.execute(revoked).one_or_none()
    if row is None:
        raise NotFound(f"no token has the id {id!r}; see `minutehand token list`")
    app_id: int | None = row.small_app_id
    return app_id


def _valid() -> sa.Select[Any]:
    now = database_now()
    there = tokens.c.small_app_id.is_(None) | (
        small_apps.c.name.is_not(None) & small_apps.c.deleted_at.is_(None)
    )
    is_stale = tokens.c.last_used_at.is_(None) | (
        tokens.c.last_used_at < database_now(-USED_WITHIN)
    )
    return (
        sa.select(
            tokens.c.id,
            tokens.c.role,
            tokens.c.hash,
            small_apps.c.name.label("app_name"),
            is_stale.label("is_stale"),
        )
        .outerjoin(small_apps, small_apps.c.id == tokens.c.small_app_id)
        .where(
            tokens.c.revoked_at.is_(None),
            tokens.c.expires_at.is_(None) | (tokens.c.expires_at > now),
            there,
        )
    )


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _id_in(text: str) -> str:
    prefix, _, rest = text.partition("_")
    id, _, _ = rest.partition("_")
    return id if prefix == PREFIX else ""
