"""Endpoints of a small app's users, groups and events."""

from typing import Annotated

from fastapi import Query

from models.roles import Permission
from views import users
from views.installation import Installation
from views.users import events
from web.access import of_app
from web.bodies import Body, document, reads, reads_model, value_of
from web.paging import LINKED, Linked
from web.routing import endpoints, heavy

router = endpoints("people", "/api/apps/{app}")
Reader = Annotated[Installation, of_app(Permission.READ)]
Operator = Annotated[Installation, of_app(Permission.OPERATE)]
Editor = Annotated[Installation, of_app(Permission.EDIT)]
USERS = reads("UserDocument", "A user: docs/reference/small-app.md.", many=True)
LONGEST_USERS = 2**20


@router.get("/users", responses=LINKED)
def list_users(opened: Reader, asked: Linked) -> users.Users:
    """List the users of a small app, by id."""
    return users.Users(asked.items(users.list_users(opened, asked.limit, asked.cursor)))


@router.post("/users", status_code=201, openapi_extra=reads_model(users.NewUser))
@heavy
def add_user(opened: Editor, body: Body) -> users.AddedUser:
    """Store a new user, which raises the events created and activated; 409 for a known id."""
    return users.add(opened, value_of(body, users.NewUser))


@router.post("/users:import", openapi_extra=USERS)
@heavy
def import_users(
    opened: Editor,
    body: Body,
    events: Annotated[bool, Query(description="Raise the events of new instants.")] = False,
) -> users.ImportedUsers:
    """Create or update users, all or none."""
    read = document(body, LONGEST_USERS)
    rows = read if isinstance(read, list) else [read]
    return users.import_rows(opened, rows, raises_events=events)


@router.get("/users/{user}")
def show_user(opened: Reader, user: str) -> users.User:
    """Show a user."""
    return users.show(opened, user)


@router.patch("/users/{user}", openapi_extra=reads_model(users.ChangedUser))
@heavy
def update_user(opened: Editor, user: str, body: Body) -> users.User:
    """Change a user; fields that are left out stay."""
    return users.update(opened, user, value_of(body, users.ChangedUser))


@router.delete("/users/{user}")
@heavy
def delete_user(opened: Editor, user: str) -> users.DeletedUser:
    """Delete a user; operations about the user stay."""
    return users.delete(opened, user)


@router.get("/groups", responses=LINKED)
def list_groups(opened: Reader, asked: Linked) -> users.Groups:
    """List the groups of a small app with the number of their members, by name."""
    return users.Groups(asked.items(users.list_groups(opened, asked.limit, asked.cursor)))


@router.post("/events", status_code=202, openapi_extra=reads_model(events.NewEvent))
def send_event(opened: Operator, body: Body) -> events.SentEvent:
    """Store an event of a user; the same id twice changes nothing."""
    event = value_of(body, events.NewEvent)
    return events.send(opened, event.event, event.user, event.id, event.at)
