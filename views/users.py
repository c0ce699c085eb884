"""Users of a small app."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import ConfigDict, Field

from models.errors import Refused
from models.sql import read_clock
from models.store import audit
from models.store.people import users
from models.users import parse_user, parse_users
from runtime.database import reading
from views.installation import Installation
from views.view import Instant, Listing, View
from views.words import instant


class User(View):
    """A user."""

    id: str
    email: str
    name: str | None
    active: bool = Field(description="False for an inactive user.")
    created_at: Instant
    activated_at: Instant | None = Field(description="Null for an account never activated.")
    last_seen_at: Instant | None
    groups: tuple[str, ...] = Field(description="Sorted.")


class Users(Listing[User]):
    """The users of a small app, by id."""


class AddedUser(View):
    """A user that was added."""

    id: str
    email: str
    groups: tuple[str, ...]
    is_activated: bool = Field(description="Whether the account was ever activated.")


class ImportedUsers(View):
    """What an import did."""

    created: int
    updated: int
    never_activated: int = Field(description="Users of the file without `activated_at`.")


class Group(View):
    """A group of users."""

    name: str
    members: int


class Groups(Listing[Group]):
    """The groups of a small app, by name."""


class NewUser(View):
    """A new user as a request describes it; instants may be local times of the small app."""

    model_config = ConfigDict(extra="forbid")

    id: str
    email: str | None = None
    name: str | None = None
    groups: tuple[str, ...] = ()
    activated_at: str | None = Field(None, description="An instant, or `now`.")
    active: bool = Field(True, strict=True)


def add(installation: Installation, new: NewUser) -> AddedUser:
    """Store a new user, which raises the events created and activated."""
    app = installation.small_app
    row: dict[str, Any] = {"id": new.id, "groups": list(new.groups), "active": new.active}
    row |= {"email": new.email} if new.email is not None else {}
    row |= {"name": new.name} if new.name is not None else {}
    with installation.engine.begin() as connection:
        now = read_clock(connection)
        if new.activated_at is not None:
            row["activated_at"] = instant(now) if new.activated_at == "now" else new.activated_at
        model = parse_user(row, app.zone)
        if model.activated_at is not None and model.activated_at > now:
            raise Refused(
                f"--activated-at {new.activated_at} is in the future; write an instant up to now"
            )
        if not users.add(connection, app.id, model):
            raise Refused(f"user {new.id!r} already exists; use `minutehand user import`")
        users.check_room(connection, app.id, installation.settings.limits.users)
        _audit(connection, installation, "user.add", model.id, None)
    return AddedUser(
        id=model.id,
        email=model.email,
        groups=tuple(model.groups),
        is_activated=model.activated_at is not None,
    )


def import_rows(
    installation: Installation, rows: Sequence[object], *, raises_events: bool
) -> ImportedUsers:
    """Import users with their groups, all or none; raises InvalidDocument with all problems."""
    app = installation.small_app
    models = parse_users(rows, zone=app.zone)
    with installation.engine.begin() as connection:
        done = users.import_users(connection, app.id, models, raises_events=raises_events)
        if done.created:
            users.check_room(connection, app.id, installation.settings.limits.users)
        counts = {"created": done.created, "updated": done.updated}
        _audit(connection, installation, "user.import", app.name, counts)
    never_activated = sum(one.activated_at is None for one in models)
    return ImportedUsers(**counts, never_activated=never_activated)


def list_users(installation: Installation) -> Users:
    with reading(installation.engine) as connection:
        found = users.listed(connection, installation.small_app.id)
    return Users(tuple(_shown(user) for user in found))


def list_groups(installation: Installation) -> Groups:
    with reading(installation.engine) as connection:
        found = users.group_sizes(connection, installation.small_app.id)
    return Groups(tuple(Group(name=name, members=count) for name, count in found.items()))


def _shown(user: users.User) -> User:
    values = {key: getattr(user, key) for key in User.model_fields if key != "groups"}
    return User(**values, groups=tuple(sorted(user.groups)))


def _audit(
    connection: sa.Connection,
    installation: Installation,
    verb: str,
    name: str,
    details: dict[str, Any] | None,
) -> None:
    audit.write(
        connection,
        small_app_id=installation.small_app.id,
        actor=installation.actor,
        verb=verb,
        objects={name: details},
    )
