"""Find the action or operation that a user names."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.errors import Hint, NotFound, Refused
from models.hints import MOST_COMPARED, listed, nearest
from models.store import actions, operations, tenants
from models.store.scope import WHOLE_INSTALLATION, Scope
from models.store.tenants.closing import closing_rows
from models.values import parse_instant
from models.values.durations import parse_span
from services.installation import Installation

MOST_NAMED = 5
# The longest number in a cursor.
MOST_DIGITS = 10


def named_elsewhere(
    connection: sa.Connection, installation: Installation, thing: str, name: str
) -> NotFound | None:
    """Return the error for an action or user whom only other small apps have, else None.

    None also for a request that may not see them.
    """
    if installation.is_bound:
        return None
    others = tenants.apps_with(connection, thing, name, MOST_NAMED)
    if not others:
        return None
    return NotFound(
        f"small app {installation.app_name!r} has no {thing} named {name!r};"
        f" it is in {listed(others)}",
        Hint(
            f"add --app {others[0]}",
            f"choose the small app {others[0]!r}",
            f"send app={others[0]}",
        ),
    )


def unknown_user(connection: sa.Connection, installation: Installation, id: str) -> NotFound:
    """Return the error for a user whom the request's small app does not have."""
    elsewhere = named_elsewhere(connection, installation, "user", id)
    return elsewhere or NotFound(f"no user is named {id!r}", Hint("see `minutebook user list`"))


def wrong_cursor(cursor: str) -> Refused:
    """Return the error for a cursor that is not a place in the list."""
    return Refused(f"cursor {cursor!r} is not valid; use `next` of the previous page")


def number_in(cursor: str) -> int:
    """Return the number in a cursor; raises Refused for any other text."""
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < MOST_DIGITS):
        raise wrong_cursor(cursor)
    return int(cursor)


def find(
    connection: sa.Connection,
    installation: Installation,
    name: str,
    *,
    include_deleted: bool = False,
) -> dict[str, Any]:
    """Return the action of that name in the request's small app, or of that uid in its scope.

    Its plan leaves out what calendars hold now.
    Raises NotFound, which names the other small apps that have an action of this name if the
    request may see them.
    """
    app = installation.small_app
    try:
        asked = (app.id, name, installation.scope)
        found = actions.find(connection, *asked, include_deleted=include_deleted)
        return closing_rows(connection, [found])[0]
    except NotFound as error:
        elsewhere = named_elsewhere(connection, installation, "action", name)
        raise elsewhere or _misspelled(connection, app.id, error, name) from error


def _misspelled(
    connection: sa.Connection, small_app_id: int, error: NotFound, name: str
) -> NotFound:
    """Return the error for an action's name that the small app has in another spelling."""
    near = nearest(name, actions.first_names(connection, small_app_id, MOST_COMPARED))
    if near is None:
        return error
    advice = f"did you mean {near!r}?"
    return NotFound(error.fact, Hint(advice, advice))


def app_of(
    connection: sa.Connection, installation: Installation, row: Mapping[str, Any]
) -> SmallApp:
    """Return the small app of a stored action: a uid may find one of another small app."""
    app = installation.small_app
    its_own = row["small_app_id"]
    return app if its_own == app.id else tenants.by_id(connection, its_own)


def scope_of(installation: Installation, *, all_apps: bool) -> Scope:
    """Return the request's small app as a scope, or all of them.

    Raises Refused for all of them in a request that is bound to one.
    """
    if all_apps and installation.is_bound:
        raise Refused(
            f"all_apps cannot be combined with the small app {installation.app_name!r}; choose one"
        )
    return WHOLE_INSTALLATION if all_apps else Scope(installation.small_app.id)


def find_app(connection: sa.Connection, installation: Installation, name: str) -> SmallApp:
    """Return the small app of that name; raises NotFound, even if it exists outside the scope."""
    if not installation.may_see(name):
        raise unknown_app(name)
    if name == installation.app_name:
        return installation.small_app
    return tenants.get(connection, name)


def unknown_app(name: str) -> NotFound:
    """Return the error of a small app that the request may not see, whether it exists or not."""
    return NotFound(f'small app "{name}" is unknown')


def instant_of(what: str, text: str, zone: str, now: datetime) -> datetime:
    """Return the instant that a user wrote for `what`; raises Refused.

    It is written as in a document, or is `now`, or a duration back from now, such as `PT5M`.
    """
    now = now.replace(microsecond=0)
    with refusing(what, text):
        if text == "now":
            return now
        return now - parse_span(text) if text.startswith("P") else parse_instant(text, zone)


@contextmanager
def refusing(what: str, text: str) -> Iterator[None]:
    """Raise Refused if reading a text as `what` raises ValueError."""
    try:
        yield
    except ValueError as error:
        raise Refused(f"{what} {text!r}: {error}") from None


SHORTEST_PREFIX = 4
_PREFIX = re.compile(r"[0-9a-f-]+", re.ASCII | re.IGNORECASE)


def operation_of(connection: sa.Connection, text: str, scope: Scope) -> UUID:
    """Return the id of the operation of the scope whose id begins with `text`.

    Raises NotFound if there is none, and Refused if there are several.
    """
    digits = text.replace("-", "").lower()
    is_prefix = _PREFIX.fullmatch(text) and SHORTEST_PREFIX <= len(digits) < 32
    if not is_prefix:
        return operation_id(text)
    found = operations.beginning_with(connection, digits, scope)
    if not found:
        raise NotFound(f"no run's id begins with {text}; see `minutebook run list`")
    if len(found) > 1:
        raise Refused(f"several runs' ids begin with {text}; write more of it")
    return found[0]


def operation_id(text: str) -> UUID:
    """Return the operation id that a user wrote; raises NotFound for another text."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(
            f"{text!r} is not a run's id",
            Hint("write one as `minutebook run list` shows", "choose one from the list of runs"),
        ) from None
