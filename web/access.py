"""Who sends a request, and what they may do: each endpoint names its permission by one of these."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
import sqlalchemy as sa
from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from models.roles import Permission, Role
from models.store import bearers
from models.store.bearers import Bearer
from runtime.database import DATABASE_AWAY, glancing
from services.installation import Installation
from services.lookup import unknown_app
from web.problems import Forbidden, Unauthorized
from web.routing import WORKERS

UNNAMED = "send a token as `Authorization: Bearer …`"
# A worker of the same account on this machine follows every task.
LOCAL = Bearer("", Role.WORKER, None, "a worker at web.sock", tasks=("*",))

_scheme = HTTPBearer(auto_error=False, description="A token of `minutebook token create`.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_scheme)]
AppQuery = Annotated[
    str | None,
    Query(description="A small app (tenant); that of the token, or `default`, without it."),
]


@dataclass(frozen=True)
class Access:
    """The permission of an endpoint, and what it concerns."""

    permission: Permission
    # Whether it concerns the installation, so that no token of a small app will do.
    is_of_installation: bool = False


Resolve = Callable[..., Any]
# Finds the bearer of a secret, and whether to note its use.
Find = Callable[[sa.Connection, str], tuple[Bearer, bool] | None]
# The access of each dependency that the endpoints use; a test compares the page of roles with it.
ACCESS: dict[Resolve, Access] = {}


def declared(resolve: Resolve, access: Access) -> Any:
    """Return the dependency of an endpoint, noted with its permission."""
    ACCESS[resolve] = access
    return Depends(resolve)


def of_app(permission: Permission) -> Any:
    """Return the dependency of an endpoint whose path names a small app."""

    async def resolve(request: Request, credentials: Credentials, app: str) -> Installation:
        return opened_for(request, await _bearer(request, credentials, permission), app)

    return declared(resolve, Access(permission))


def in_app(permission: Permission) -> Any:
    """Return the dependency of an endpoint that takes `?app=`."""

    async def resolve(
        request: Request, credentials: Credentials, app: AppQuery = None
    ) -> Installation:
        return opened_for(request, await _bearer(request, credentials, permission), app)

    return declared(resolve, Access(permission))


def by_id(permission: Permission) -> Any:
    """Return the dependency of an endpoint whose path has an id, unique in the installation."""

    async def resolve(request: Request, credentials: Credentials) -> Installation:
        return opened_for(request, await _bearer(request, credentials, permission), None)

    return declared(resolve, Access(permission))


def of_installation(permission: Permission) -> Any:
    """Return the dependency of an endpoint that concerns the whole installation."""

    async def resolve(request: Request, credentials: Credentials) -> Installation:
        bearer = await _bearer(request, credentials, permission)
        if bearer.app_name is not None:
            raise Forbidden("this needs a token of the installation, not of one small app")
        return opened_for(request, bearer, None)

    return declared(resolve, Access(permission, is_of_installation=True))


async def _bearer(
    request: Request, credentials: HTTPAuthorizationCredentials | None, permission: Permission
) -> Bearer:
    """Return the bearer of the request's token; raises the error to answer with."""
    if credentials is None:
        raise Unauthorized(UNNAMED)
    known = partial(authenticated, request, credentials.credentials)
    if permission is Permission.WORK:
        bearer = await asyncio.get_running_loop().run_in_executor(WORKERS, known)
    else:
        bearer = await anyio.to_thread.run_sync(known)
    require(bearer, permission)
    return bearer


def worker_of(request: Request, permission: Permission) -> Bearer:
    """Return the bearer of a worker's request: that of its token, or whoever opened our socket."""
    if is_local(request):
        return LOCAL
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise Unauthorized(UNNAMED)
    bearer = authenticated(request, text.strip())
    require(bearer, permission)
    return bearer


def is_local(request: Request) -> bool:
    """Return whether a request came by the socket in the home folder, which its account opens."""
    path = getattr(request.app.state, "socket", None)
    return path is not None and request.scope.get("server") == (path, None)


def authenticated(request: Request, text: str) -> Bearer:
    """Return the bearer of a token; raises Unauthorized."""
    bearer = found_bearer(request, bearers.bearer_of, text)
    if bearer is None:
        raise Unauthorized("the token is unknown, expired or revoked")
    return bearer


def found_bearer(request: Request, find: Find, text: str) -> Bearer | None:
    """Return the bearer of a valid token or cookie, and note its use if the database lets us."""
    opened: Installation = request.app.state.installation
    with glancing(opened.engine) as connection:
        bearer, is_stale = find(connection, text) or (None, False)
    if bearer is not None and is_stale:
        with suppress(*DATABASE_AWAY), opened.engine.begin() as connection:
            bearers.note_use(connection, bearer.token_id)
    return bearer


def require(bearer: Bearer, permission: Permission) -> None:
    """Raise Forbidden if the bearer's role does not permit something."""
    if not bearer.may(permission):
        hint = _hint(bearer, permission)
        raise Forbidden(f"the role {bearer.role} may not {permission}{hint}")


def _hint(bearer: Bearer, permission: Permission) -> str:
    """Return which token of a worker would do."""
    if bearer.role is not Role.WORKER or permission not in {Permission.WORK, Permission.FOLLOW}:
        return ""
    made = "with --tasks PATTERN" if permission is Permission.FOLLOW else "without --tasks"
    return f" by this token; make one by `minutebook token create --role worker` {made}"


def opened_for(request: Request, bearer: Bearer, app: str | None) -> Installation:
    """Return the installation as the bearer sees it; raises NotFound for another small app."""
    if app is not None and bearer.app_name not in {None, app}:
        raise unknown_app(app)
    named = app or bearer.app_name
    opened: Installation = request.app.state.installation
    return opened.for_request(named, is_bound=named is not None, bearer=bearer.actor)
