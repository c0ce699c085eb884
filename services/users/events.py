"""Events: what happened to users."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar
from uuid import uuid4

import sqlalchemy as sa
from pydantic import Field

from models.errors import InvalidDocument, NotFound, Problem, Refused
from models.events import ACTIVATED, CREATED, EVENTS, LAST_SEEN, event_id, event_name
from models.sql import read_clock
from models.store.people import events, users
from models.values import parse_instant
from services.installation import Installation
from services.lookup import unknown_user
from services.verbs import OPERATE, Verb
from services.view import Instant, View
from services.words import instant

T = TypeVar("T")
COLUMNS = {ACTIVATED: "activated_at", LAST_SEEN: "last_seen_at"}


class SentEvent(View):
    """An event that was sent, and its result."""

    event: str = Field(description="Its name.")
    user: str = Field(description="Id of the user.")
    id: str | None = Field(description="Its own id; null for an event of a user's own instant.")
    at: Instant = Field(description="When it happened; for `overtaken`, the later one.")
    change: str = Field(description="`sent`, `known` (sent before) or `overtaken`.")


@Verb(
    "send_event",
    "POST /api/apps/{app}/events",
    OPERATE,
    body=("event", "user", "id", "at"),
    status=202,
)
def send(
    installation: Installation,
    event: Annotated[str, Field(description="Its name.")],
    user: Annotated[str, Field(description="Id of the user.")],
    id: Annotated[str | None, Field(description="Its own id; a new one without it.")] = None,
    at: Annotated[str | None, Field(description="When it happened; now without it.")] = None,
) -> SentEvent:
    """Record an event of a user. Sending the same id twice changes nothing."""
    name = _read("event", event_name, event)
    given = None if id is None else _read("id", event_id, id)
    _check(name, given)
    app = installation.small_app
    with installation.engine.begin() as connection:
        now = read_clock(connection)
        happened_at = now if at is None else _instant(at, app.zone, now)
        if users.find(connection, app.id, user) is None:
            raise unknown_user(connection, installation, user)
        if name in EVENTS:
            values = _move(connection, app.id, name, user, happened_at)
        else:
            values = _add(connection, app.id, name, (given or str(uuid4()), user), happened_at)
    return SentEvent(event=name, user=user, **values)


def _check(name: str, id: str | None) -> None:
    if name == CREATED:
        raise Refused(f"{name} is sent by `minutebook user add`")
    if name in EVENTS and id is not None:
        raise Refused(f"id {id!r} is for events of your own; {name} has none")


def _move(
    connection: sa.Connection, app: int, name: str, user: str, at: datetime
) -> dict[str, Any]:
    moved = users.move(connection, app, user, COLUMNS[name], at)
    if moved is None:
        raise NotFound(f"no user is named {user!r}; see `minutebook user list`")
    return {"id": None, "at": moved.at, "change": "sent" if moved.raised else "overtaken"}


def _add(
    connection: sa.Connection, app: int, name: str, ids: tuple[str, str], at: datetime
) -> dict[str, Any]:
    id, user = ids
    is_new = events.add(connection, app, name, id, user, at)
    return {"id": id, "at": at, "change": "sent" if is_new else "known"}


def _read(where: str, read: Callable[[str], T], value: str) -> T:
    try:
        return read(value)
    except ValueError as error:
        raise InvalidDocument([Problem(where, value, str(error))]) from None


def _instant(text: str, zone: str, now: datetime) -> datetime:
    at = _read("at", lambda value: parse_instant(value, zone, round_up=True), text)
    if at > now:
        raise Refused(f"at {text!r} is in the future (now is {instant(now)}); write one up to now")
    return at
