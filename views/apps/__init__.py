"""Views of small apps (tenants): in a list, with status and document."""

import json
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field, SkipValidation, model_serializer

from models.sql import read_clock
from models.store import tenants
from models.store.operations import pages
from models.store.scope import Scope
from models.store.tenants import app_overview, app_status
from runtime.database import glancing, reading
from views.door import Door, every
from views.finding import find_app
from views.installation import Installation
from views.verbs import READ, Verb
from views.view import Instant, Listing, Page, View, as_json, first_of

RECENT = 5
# Actions that a form suggests.
MOST_NAMES = 200


class AppRow(View):
    """A small app in a list."""

    name: str = Field(description="Its name, which never changes.")
    zone: str = Field(description="IANA zone of rules and instants that name none.")
    owner: str | None = Field(description="The `owner` of its document, any text.")
    domains: tuple[str, ...] = Field(description="Names of its sets of data.")


class Apps(Listing[AppRow]):
    """All small apps, by name."""


class InEachApp(View):
    """A list of each small app, by its name; as JSON, one list of rows that name their `app`."""

    lists: dict[str, SkipValidation[Listing[Any]]]

    @model_serializer
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all lists, each with the name of its small app first."""
        return [{"app": name, **row} for name, one in self.lists.items() for row in as_json(one)]


class Domain(View):
    """A domain of data: rows that were refreshed, and rows that readers see."""

    name: str = Field(description="Name of the set of data.")
    staged_rows: int | None = Field(description="Rows in staging; null before the first refresh.")
    refreshed_at: Instant | None = Field(description="When staging was brought up to date last.")
    published_rows: int | None = Field(
        description="Rows that readers see; null before the first publish."
    )
    published_at: Instant | None = Field(description="When production was moved last.")


class ActionsOfApp(View):
    """How many actions a small app has."""

    total: int = Field(description="All of them.")
    active: int = Field(description="Those that are not paused.")


class NextOfApp(View):
    """The action that is due first by the clock."""

    action: str = Field(description="Name of the action.")
    at: Instant = Field(description="When it is due.")


class DataStatus(View):
    """The status of a small app's data."""

    status: str = Field(description="`running`, `ready`, `failed`, or `empty` before a refresh.")
    phase: str | None = Field(
        description="Of what runs: `probe`, `download`, `import`, `publish` or a step's own."
    )
    message: str | None = Field(description="What the step that runs reported last.")
    blocking_maintenance: bool = Field(
        description="Whether data change now, so that a page should cover them."
    )
    next_run_at: Instant | None = Field(
        description="When the next refresh is due by the clock; null: none is."
    )
    data_updated_at: Instant | None = Field(
        description="When the newest data that readers see were read; a failed run leaves it."
    )
    last_error: str | None = Field(description="Why the last refresh failed, or failed in part.")
    run_type: Any = Field(description="Of the last refresh: `complete`, `cached` or `bootstrap`.")
    rewritten: Any = Field(description="Domains that the last refresh staged anew.")
    reused: Any = Field(description="Domains that the last refresh did not have to read.")
    eta: Instant | None = Field(description="Estimated end of what runs.")
    started_at: Instant | None = Field(description="Start of what runs.")
    elapsed_s: float | None = Field(description="How long it has run.")
    eta_s: float | None = Field(
        description="How long it probably still takes; null: unknown, or past `eta`."
    )
    is_longer_than_usual: bool = Field(description="Whether it takes twice as long as usual.")


class DataOfApp(View):
    """The data of a small app: its domains, and their status."""

    domains: tuple[Domain, ...]
    data: DataStatus


class OperationOfApp(View):
    """One of a small app's last operations."""

    id: UUID = Field(description="Id of the operation.")
    action_name: str = Field(description="Name of its action.")
    occurrence_at: Instant = Field(description="The instant at which it was due.")
    state: str = Field(description="Its state: `success`, `failed`, `missed` and so on.")
    error: str | None = Field(description="Why it failed, or failed in part.")


class NamesOfApp(View):
    """What a small app's documents may name."""

    groups: tuple[str, ...] = Field(description="The first of its groups.")
    templates: tuple[str, ...]
    actions: tuple[str, ...] = Field(description="The first of its active actions.")


class App(View):
    """A small app: its document, status and last operations."""

    name: str = Field(description="Its name, which never changes.")
    zone: str = Field(description="IANA zone of rules and instants that name none.")
    trusted: bool = Field(description="Whether it may name whatever the settings allow.")
    queues: tuple[str, ...] = Field(description="Queues that the admin gave it, if restricted.")
    tasks: tuple[str, ...] = Field(description="Celery tasks that the admin gave it, or patterns.")
    document: dict[str, Any] = Field(description="As it is stored.")
    document_tag: str = Field(description="Names the document: another one has another tag.")
    domains: tuple[Domain, ...] = Field(description="Its sets of data, by name.")
    actions: ActionsOfApp = Field(description="How many actions it has.")
    next: NextOfApp | None = Field(description="What is due first; null if nothing is.")
    running: int = Field(description="Operations that run now.")
    users: int = Field(description="How many users it has.")
    groups: int = Field(description="How many groups of users it has.")
    data: DataStatus = Field(description="How fresh its data are.")
    operations: tuple[OperationOfApp, ...] = Field(
        description="Its last operations, the newest first."
    )


def in_each(door: Door, read: Callable[[Door], Listing[Any]]) -> InEachApp:
    """Return what `read` lists of each small app that may be seen."""
    names = [one.name for one in every(door, list_apps)]
    return InEachApp(lists={name: read(door.seen_in(name)) for name in names})


@Verb("list_apps", "GET /api/apps", READ, pages=Apps)
def list_apps(installation: Installation, limit: int, cursor: str | None = None) -> Page[AppRow]:
    """List the small apps that the token may see, by name."""
    only = installation.app_name if installation.is_bound else None
    with reading(installation.engine) as connection:
        found = tenants.page(connection, cursor, limit + 1, only)
        shown, following = first_of(found, limit, lambda row: row[0].name)
        domains = tenants.domains_by_app(connection, [app.id for app, _ in shown])
    rows = (
        AppRow(name=app.name, zone=app.zone, owner=owner, domains=domains.get(app.id, ()))
        for app, owner in shown
    )
    return Page[AppRow](items=tuple(rows), next=following)


def app_names(installation: Installation) -> list[str]:
    """Return the names of the small apps that the request may see, in order."""
    with reading(installation.engine) as connection:
        names = [app.name for app in tenants.listed(connection)]
    return [name for name in names if installation.may_see(name)]


@Verb("show_app", "GET /api/apps/{app=name}", READ)
def show(installation: Installation, name: str) -> App:
    """Return a small app; raises NotFound."""
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        now = read_clock(connection)
        recent = pages.page(connection, pages.Wanted(Scope(app.id)), RECENT)
        overview = app_overview.overview(connection, app.id)
        return App(
            name=app.name,
            zone=app.zone,
            document_tag=tag_of(overview["document"]),
            **overview,
            data=_status_of(connection, installation, app.id, now),
            operations=tuple(OperationOfApp.of(row) for row in recent),
        )


def names(installation: Installation) -> NamesOfApp:
    """Return the names of what the request's small app has, in order."""
    with reading(installation.engine) as connection:
        app = installation.small_app.id
        return NamesOfApp.of(app_overview.names_in(connection, app, MOST_NAMES))


def status(installation: Installation, name: str) -> DataStatus:
    """Return the status of a small app's data; raises NotFound."""
    with glancing(installation.engine) as connection:
        app = find_app(connection, installation, name)
        return _status_of(connection, installation, app.id)


def data_of(installation: Installation, name: str) -> DataOfApp:
    """Return the domains of a small app, and the status of their data; raises NotFound."""
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        domains = app_overview.domains_of(connection, app.id)
        return DataOfApp(
            domains=tuple(Domain(**one) for one in domains),
            data=_status_of(connection, installation, app.id),
        )


def statuses(installation: Installation, names: Collection[str]) -> dict[str, DataStatus]:
    """Return the status of those small apps that exist, by name."""
    with reading(installation.engine) as connection:
        apps = {app.id: app.name for app in tenants.listed(connection) if app.name in names}
        now, lease = read_clock(connection), installation.settings.worker.lease
        found = app_status.statuses_of(connection, apps, now, lease)
    return {apps[id]: DataStatus(**status) for id, status in found.items()}


def _status_of(
    connection: sa.Connection, installation: Installation, app: int, now: datetime | None = None
) -> DataStatus:
    lease = installation.settings.worker.lease
    now = now or read_clock(connection)
    return DataStatus(**app_status.statuses_of(connection, [app], now, lease)[app])


def tag_of(document: Mapping[str, Any]) -> str:
    """Return what names a document: equal documents have equal tags."""
    text = json.dumps(document, ensure_ascii=False, sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
