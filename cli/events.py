"""`minutehand event …`: what happened to users."""

from datetime import datetime
from typing import Annotated, Any
from uuid import uuid4

import sqlalchemy as sa
import typer

from cli.invocation import Invocation, existing
from cli.output import instant, print_json, print_line
from cli.tree import group
from models.errors import InvalidDocument, NotFound, Problem, Refused
from models.events import ACTIVATED, CREATED, EVENTS, LAST_SEEN, event_id, event_name
from models.sql import read_clock
from models.store.people import events, users
from models.values import parse_instant
from scheduler.events.preview import too_late_for

commands = group("Events: what happened to users.")

COLUMNS = {ACTIVATED: "activated_at", LAST_SEEN: "last_seen_at"}


@commands.command("send")
def send(
    context: typer.Context,
    event: Annotated[str, typer.Argument(help="Name of an event.", metavar="EVENT")],
    user: Annotated[str, typer.Option(help="Id of the user it is about.")],
    id: Annotated[
        str | None, typer.Option(help="The event's own id (default: one is made).")
    ] = None,
    at: Annotated[str | None, typer.Option(help="When it happened (default: now).")] = None,
) -> None:
    """Tell that something happened to a user. The same id twice changes nothing."""
    invocation = existing(context)
    name = _read("EVENT", event_name, event)
    given = None if id is None else _read("--id", event_id, id)
    _check(name, given)
    with invocation.engine.begin() as connection:
        now = read_clock(connection)
        happened_at = now if at is None else _instant(at, invocation, now)
        app = invocation.small_app.id
        if users.find(connection, app, user) is None:
            raise NotFound(f"no user is named {user!r}; see `minutehand user list`")
        if name in EVENTS:
            told = _move(connection, app, name, user, happened_at)
        else:
            told = _add(connection, app, name, (given or str(uuid4()), user), happened_at)
        is_new = told["change"] == "sent"
        late = too_late_for(connection, app, name, happened_at, now) if is_new else []
    shown = {"event": name, "user": user, **told, "too_late_for": late}
    if invocation.as_json:
        print_json(shown)
    else:
        _print(shown)


def _check(name: str, id: str | None) -> None:
    if name == CREATED:
        raise Refused(f"{name} is told by `minutehand user add`")
    if name in EVENTS and id is not None:
        raise Refused(f"--id is for events of your own; {name} has none")


def _move(
    connection: sa.Connection, app: int, name: str, user: str, at: datetime
) -> dict[str, Any]:
    stands = users.move(connection, app, user, COLUMNS[name], at)
    return {"id": None, "at": stands, "change": "sent" if stands == at else "overtaken"}


def _add(
    connection: sa.Connection, app: int, name: str, told: tuple[str, str], at: datetime
) -> dict[str, Any]:
    id, user = told
    is_new = events.add(connection, app, name, id, user, at)
    return {"id": id, "at": at, "change": "sent" if is_new else "known"}


def _print(shown: dict[str, Any]) -> None:
    what = shown["event"] if shown["id"] is None else f"{shown['event']} {shown['id']}"
    match shown["change"]:
        case "sent":
            print_line(f"sent {what} of {shown['user']}, {instant(shown['at'])}")
        case "known":
            print_line(f"{what} is there already; nothing changed")
        case _:
            print_line(
                f"{what} of {shown['user']} is {instant(shown['at'])} already; nothing changed"
            )
    for name in shown["too_late_for"]:
        print_line(f"  warning: too late for {name}; see its policy.look_back")


def _read(where: str, read: Any, value: str) -> str:
    try:
        return str(read(value))
    except ValueError as error:
        raise InvalidDocument([Problem(where, value, str(error))]) from None


def _instant(text: str, invocation: Invocation, now: datetime) -> datetime:
    try:
        at = parse_instant(text, invocation.small_app.zone, round_up=True)
    except ValueError as error:
        raise InvalidDocument([Problem("--at", text, str(error))]) from None
    if at > now:
        raise Refused(f"--at {text} is to come (now is {instant(now)}); write one until now")
    return at
