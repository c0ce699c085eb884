"""Users of a small app."""

from collections.abc import Sequence
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field

from models.errors import Refused
from models.sql import read_clock
from models.store.people import users
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from models.users import UserModel, parse_user, parse_users
from runtime.database import reading
from services.installation import Installation
from services.lookup import unknown_user
from services.verbs import EDIT, READ, DocumentKind, Verb
from services.view import Instant, Listing, Page, RequestBody, View, first_of
from services.words import instant

USER = DocumentKind("UserDocument", "A user: docs/reference/small-app.md.", longest=2**20)


class User(View):
    """A user."""

    id: str = Field(description="Id of the user.")
    email: str = Field(description="The address that mails go to.")
    name: str | None = Field(description="The name for people.")
    active: bool = Field(description="False for an inactive user.")
    created_at: Instant = Field(description="When the user was added.")
    activated_at: Instant | None = Field(description="Null for an account never activated.")
    last_seen_at: Instant | None = Field(description="When the user was seen last.")
    groups: tuple[str, ...] = Field(description="Sorted.")

    @property
    def status(self) -> str:
        """Whether the user is active, and whether the account was ever activated."""
        status = "active" if self.active else "inactive"
        return status if self.activated_at else f"{status}, never activated"


class Users(Listing[User]):
    """The users of a small app, by id."""


class AddedUser(View):
    """A user that was added."""

    id: str = Field(description="Id of the user.")
    email: str = Field(description="The address that mails go to.")
    groups: tuple[str, ...] = Field(description="Names of the user's groups.")
    is_activated: bool = Field(description="Whether the account was ever activated.")


class ImportedUsers(View):
    """What an import did."""

    created: int = Field(description="New users.")
    updated: int = Field(description="Users that were changed.")
    never_activated: int = Field(description="Users of the file that never activated the account.")


class Group(View):
    """A group of users."""

    name: str = Field(description="Name of the group.")
    members: int = Field(description="How many users it has.")


class Groups(Listing[Group]):
    """The groups of a small app, by name."""


class NewUser(RequestBody):
    """A new user as a request describes it; instants may be local times of the small app."""

    id: str = Field(description="Id of the user, unique in the small app.")
    email: str | None = Field(None, description="The address that mails go to; the id without it.")
    name: str | None = Field(None, description="The name for people.")
    groups: tuple[str, ...] = Field((), description="Names of the user's groups.")
    activated_at: str | None = Field(None, description="An instant, or `now`.")
    active: bool = Field(True, strict=True, description="False switches the user off.")


class ChangedUser(RequestBody):
    """Changes of a user; a field that is left out stays. Instants are as for a new user."""

    email: str | None = Field(None, description="The address that mails go to.")
    name: str | None = Field(None, description="The name for people.")
    groups: tuple[str, ...] | None = Field(None, description="All of the user's groups.")
    activated_at: str | None = Field(None, description="An instant, or `now`.")
    active: bool | None = Field(None, strict=True, description="False switches the user off.")


class DeletedUser(View):
    """A user that was deleted; operations about the user stay."""

    id: str = Field(description="Id of the user.")


@Verb("add_user", "POST /api/apps/{app}/users", EDIT, status=201)
def add(installation: Installation, new: NewUser) -> AddedUser:
    """Store a new user. Raises the events created and activated."""
    app = installation.small_app
    row = new.model_dump(exclude_none=True, exclude={"activated_at"})
    with installation.engine.begin() as connection:
        model = _model(connection, row, new.activated_at, app.zone)
        if not users.add(connection, app.id, model):
            raise Refused(f"user {new.id!r} already exists; use `minutebook user update`")
        ceilings.check(connection, app.id, Ceiling.USERS, installation.settings.limits)
        installation.audit(connection, app.id, "user.add", {model.id: None})
    return AddedUser.of(model, is_activated=model.activated_at is not None)


def _model(
    connection: sa.Connection, row: dict[str, Any], activated_at: str | None, zone: str
) -> UserModel:
    """Return a user, activated at an instant up to now if one is given; raises Refused."""
    now = read_clock(connection)
    if activated_at is not None:
        row = row | {"activated_at": instant(now) if activated_at == "now" else activated_at}
    model = parse_user(row, zone)
    if model.activated_at is not None and model.activated_at > now:
        raise Refused(f"activated_at {activated_at!r} is in the future; write an instant up to now")
    return model


@Verb("show_user", "GET /api/apps/{app}/users/{user=id}", READ)
def show(installation: Installation, id: str) -> User:
    """Show a user.

    Raises NotFound.
    """
    with reading(installation.engine) as connection:
        return _shown(_found(connection, installation, id))


@Verb("update_user", "PATCH /api/apps/{app}/users/{user=id}", EDIT)
def update(installation: Installation, id: str, changed: ChangedUser) -> User:
    """Change the given values of a user. A new `activated_at` raises the event activated.

    Raises NotFound and InvalidDocument.
    """
    given = changed.model_dump(exclude_none=True)
    if not given:
        raise Refused("nothing is to be changed; name what, such as email")
    app, activated_at = installation.small_app, given.pop("activated_at", None)
    with installation.engine.begin() as connection:
        old = _found(connection, installation, id)
        row = {"id": id, "email": old.email, **given}
        model = _model(connection, row, activated_at, app.zone)
        users.import_users(connection, app.id, [model], raises_events=True)
        installation.audit(connection, app.id, "user.update", {id: None})
        return _shown(_found(connection, installation, id))


@Verb("delete_user", "DELETE /api/apps/{app}/users/{user=id}", EDIT)
def delete(installation: Installation, id: str) -> DeletedUser:
    """Delete a user. Runs about the user stay.

    Memberships in groups go too. Raises NotFound.
    """
    app_id = installation.small_app.id
    with installation.engine.begin() as connection:
        _found(connection, installation, id)
        users.remove(connection, app_id, id)
        installation.audit(connection, app_id, "user.delete", {id: None})
    return DeletedUser(id=id)


def _found(connection: sa.Connection, installation: Installation, id: str) -> users.User:
    found = users.find(connection, installation.small_app.id, id)
    if found is None:
        raise unknown_user(connection, installation, id)
    return found


@Verb("import_users", "POST /api/apps/{app}/users:import?events=raises_events", EDIT, kind=USER)
def import_rows(
    installation: Installation,
    documents: Sequence[object],
    *,
    raises_events: Annotated[bool, Field(description="Raise events for new instants.")] = False,
) -> ImportedUsers:
    """Create or update users, all or none.

    With their groups; raises InvalidDocument with all problems.
    """
    app = installation.small_app
    models = parse_users(documents, zone=app.zone)
    with installation.engine.begin() as connection:
        done = users.import_users(connection, app.id, models, raises_events=raises_events)
        if done.created:
            ceilings.check(connection, app.id, Ceiling.USERS, installation.settings.limits)
        inactivated = users.never_activated(connection, app.id, [one.id for one in models])
        counts = {"created": done.created, "updated": done.updated}
        installation.audit(connection, app.id, "user.import", {app.name: counts})
    return ImportedUsers(**counts, never_activated=inactivated)


@Verb("list_users", "GET /api/apps/{app}/users", READ, pages=Users)
def list_users(installation: Installation, limit: int, cursor: str | None = None) -> Page[User]:
    """List the users of the small app."""
    with reading(installation.engine) as connection:
        found = users.page(connection, installation.small_app.id, cursor, limit + 1)
    shown, following = first_of(found, limit, lambda user: user.id)
    return Page[User](items=tuple(_shown(user) for user in shown), next=following)


@Verb("list_groups", "GET /api/apps/{app}/groups", READ, pages=Groups)
def list_groups(installation: Installation, limit: int, cursor: str | None = None) -> Page[Group]:
    """List the groups of a small app with the number of their members, by name."""
    with reading(installation.engine) as connection:
        found = users.group_sizes(connection, installation.small_app.id, cursor, limit + 1)
    shown, following = first_of(found, limit, lambda group: group.name)
    return Page[Group](items=tuple(map(Group.of, shown)), next=following)


def _shown(user: users.User) -> User:
    return User.of(user, groups=tuple(sorted(user.groups)))
