"""Views of small apps (tenants): in a list, with document, and with what plug-ins show."""

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field, create_model

from models.sql import read_clock
from models.store import tenants
from models.store.operations import pages
from models.store.scope import Scope
from models.store.tenants import app_overview
from runtime.database import reading
from runtime.plug_ins import added
from services.installation import Installation
from services.lookup import find_app
from services.verbs import READ, Verb
from services.view import Instant, Listing, Page, View, first_of

RECENT = 5
# Actions that a form suggests.
MOST_NAMES = 200


class AppRow(View):
    """A small app in a list."""

    name: str = Field(description="Its name, which never changes.")
    zone: str = Field(description="IANA zone of rules and instants that name none.")
    owner: str | None = Field(description="The `owner` of its document, any text.")


class Apps(Listing[AppRow]):
    """All small apps, by name."""


class ActionsOfApp(View):
    """How many actions a small app has."""

    total: int = Field(description="All of them.")
    active: int = Field(description="Those that are not paused.")


class NextOfApp(View):
    """The action that is due first by the clock."""

    action: str = Field(description="Name of the action.")
    at: Instant = Field(description="When it is due.")


class OperationOfApp(View):
    """One of a small app's last operations."""

    id: UUID = Field(description="Id of the operation.")
    action_name: str = Field(description="Name of its action.")
    occurrence_at: Instant = Field(description="The instant at which it was due.")
    state: str = Field(description="Its state: `success`, `failed`, `missed` and so on.")
    error: str | None = Field(description="Why it failed, or failed in part.")


class App(View):
    """A small app: its document and last operations, and what plug-ins show of it."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(description="Its name, which never changes.")
    zone: str = Field(description="IANA zone of rules and instants that name none.")
    trusted: bool = Field(description="Whether it may name whatever the settings allow.")
    queues: tuple[str, ...] = Field(description="Queues that the admin gave it, if restricted.")
    tasks: tuple[str, ...] = Field(description="Celery tasks that the admin gave it, or patterns.")
    document: dict[str, Any] = Field(description="As it is stored.")
    document_tag: str = Field(description="Names the document: another one has another tag.")
    actions: ActionsOfApp = Field(description="How many actions it has.")
    next: NextOfApp | None = Field(description="What is due first; null if nothing is.")
    running: int = Field(description="Operations that run now.")
    users: int = Field(description="How many users it has.")
    groups: int = Field(description="How many groups of users it has.")
    operations: tuple[OperationOfApp, ...] = Field(
        description="Its last operations, the newest first."
    )


@cache
def app_view() -> type[App]:
    """Return the view of a small app with the fields that plug-ins add."""
    return create_model("App", __base__=(*added("app_view"), App), __doc__=App.__doc__)


@Verb("list_apps", "GET /api/apps", READ, pages=Apps)
def list_apps(installation: Installation, limit: int, cursor: str | None = None) -> Page[AppRow]:
    """List the small apps."""
    only = installation.app_name if installation.is_bound else None
    with reading(installation.engine) as connection:
        found = tenants.page(connection, cursor, limit + 1, only)
    shown, following = first_of(found, limit, lambda row: row[0].name)
    rows = (AppRow(name=app.name, zone=app.zone, owner=owner) for app, owner in shown)
    return Page[AppRow](items=tuple(rows), next=following)


def app_names(installation: Installation) -> list[str]:
    """Return the names of the small apps that the request may see, in order."""
    with reading(installation.engine) as connection:
        names = [app.name for app in tenants.listed(connection)]
    return [name for name in names if installation.may_see(name)]


@Verb("show_app", "GET /api/apps/{app=name}", READ)
def show(installation: Installation, name: str) -> App:
    """Show a small app: its status, last runs and document.

    Raises NotFound.
    """
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        now = read_clock(connection)
        recent = pages.page(connection, pages.Wanted(Scope(app.id)), RECENT)
        overview = app_overview.overview(connection, app.id)
        more: dict[str, Any] = {}
        for shown in added("app_shown"):
            more |= shown(connection, installation, app.id, now)
        return App(
            name=app.name,
            zone=app.zone,
            document_tag=tag_of(overview["document"]),
            **overview,
            operations=tuple(OperationOfApp.of(row) for row in recent),
            **more,
        )


def names(installation: Installation) -> dict[str, list[str]]:
    """Return the names that documents of the request's small app may use, by kind, in order.

    Of groups and active actions they are the first ones.
    """
    with reading(installation.engine) as connection:
        app = installation.small_app.id
        found = app_overview.names_in(connection, app, MOST_NAMES)
        for names_in in added("app_names"):
            found |= names_in(connection, app)
        return found


def tag_of(document: Mapping[str, Any]) -> str:
    """Return what names a document: equal documents have equal tags."""
    text = json.dumps(document, ensure_ascii=False, sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
