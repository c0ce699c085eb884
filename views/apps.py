"""Views of small apps (tenants): documents, status, and the results of changes."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from minutehand.grants import EVERYTHING, Grants
from models.errors import InvalidDocument, Outdated, Problem, Refused
from models.limits import PREFIX
from models.problems import listed
from models.sql import read_clock
from models.store import audit, operations
from runtime.database import reading
from runtime.references import SecretMissing
from scheduler.changes.default_actions import give_maintenance
from scheduler.changes.deletion import delete_app
from scheduler.changes.validation import ChangeContext
from small_apps.document import DEFAULT_APP, SmallAppModel, parse_small_app
from small_apps.store import app_apply, app_limits, app_overview, app_status, small_apps
from tasks.built_in import built_in_steps
from views.files import Document, located
from views.finding import find_app
from views.installation import Installation
from views.view import Instant, Listing, View
from views.warnings import app_warnings

RECENT = 5
MOST_NAMED = 12
# A small app is longer than an action, because it includes mails and people.
LONGEST_APP = 64 * 2**20

Located = tuple[str, SmallAppModel]


class AppRow(View):
    """A small app in a list."""

    name: str
    zone: str = Field(description="IANA zone of rules and instants that name none.")
    owner: str | None
    domains: tuple[str, ...]


class Apps(Listing[AppRow]):
    """All small apps, by name."""


class Domain(View):
    """A domain of data: rows that were refreshed, and rows that readers see."""

    name: str
    staged_rows: int | None
    refreshed_at: Instant | None
    published_rows: int | None
    published_at: Instant | None


class ActionsOfApp(View):
    """How many actions a small app has."""

    total: int
    active: int


class NextOfApp(View):
    """The action that is due first by the clock."""

    action: str
    at: Instant


class DataStatus(View):
    """The status of a small app's data."""

    status: str = Field(description="`running`, `ready`, `failed`, or `empty` before a refresh.")
    phase: str | None
    message: str | None
    blocking_maintenance: bool
    next_run_at: Instant | None
    data_updated_at: Instant | None
    last_error: str | None
    run_type: Any
    rewritten: Any
    reused: Any
    eta: Instant | None = Field(description="Estimated end of the refresh.")
    started_at: Instant | None = Field(description="Start of the refresh that runs.")
    elapsed_s: float | None = Field(description="How long it has run.")
    eta_s: float | None = Field(description="How long it will take yet, estimated.")


class OperationOfApp(View):
    """One of a small app's last operations."""

    id: UUID
    action_name: str
    occurrence_at: Instant
    state: str
    error: str | None


class GrantedTo(View):
    """What a small app may reach."""

    name: str
    grants: Grants = Field(description="Names or patterns by kind; `*` is all that settings allow.")


class HookSecret(View):
    """The secret that signs a small app's webhooks; its receivers need it."""

    name: str
    secret: str = Field(description="Derived from SCHED_HOOK_SECRET and the app's name.")


class LimitOfApp(View):
    """A limit that a small app is close to, or has reached."""

    setting: str = Field(description="The variable that sets it.")
    used: int = Field(description="Minutes today, messages this minute, or a count.")
    most: int


class App(View):
    """A small app: its document, status and last operations."""

    name: str
    zone: str
    grants: Grants = Field(description="What it may reach: names or patterns by kind.")
    document: dict[str, Any] = Field(description="As it is stored.")
    document_tag: str = Field(description="Names the document: another one has another tag.")
    domains: tuple[Domain, ...]
    actions: ActionsOfApp
    next: NextOfApp | None
    running: int = Field(description="Operations that run now.")
    users: int
    groups: int
    limits: tuple[LimitOfApp, ...] = Field(description="Those that are close or reached.")
    data: DataStatus
    operations: tuple[OperationOfApp, ...]


class AppliedApp(View):
    """The result of applying a small app's document."""

    name: str
    zone: str
    change: str = Field(description="`created`, `changed` or `unchanged`.")
    changes: tuple[str, ...] = Field(description="What changed, in words.")
    warnings: tuple[str, ...] = Field(description="What its admin should check.")


class AppliedApps(Listing[AppliedApp]):
    """The result of each document, in order."""


class DeletedApp(View):
    """A small app that was deleted; history, users and data stay."""

    name: str
    actions: int = Field(description="Actions that were deleted with it.")
    cancelled: int = Field(description="Unstarted operations that were cancelled.")


def list_apps(installation: Installation) -> Apps:
    """Return the small apps."""
    with reading(installation.engine) as connection:
        seen = [app for app in small_apps.listed(connection) if installation.may_see(app.name)]
        owners = small_apps.owners(connection)
        domains = small_apps.domains_by_app(connection)
    return Apps(
        tuple(
            AppRow(
                name=app.name,
                zone=app.zone,
                owner=owners.get(app.id),
                domains=domains.get(app.id, ()),
            )
            for app in seen
        )
    )


def show(installation: Installation, name: str) -> App:
    """Return a small app; raises NotFound."""
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        recent = operations.recent(connection, RECENT, small_app_id=app.id)
        return App(
            name=app.name,
            zone=app.zone,
            grants=small_apps.grants_of(connection, app.id),
            document=(document := small_apps.document_of(connection, app.id)),
            document_tag=tag_of(document),
            **app_overview.overview(connection, app.id),
            limits=tuple(
                LimitOfApp(setting=PREFIX + use.limit.upper(), used=use.used, most=use.most)
                for use in app_limits.close(connection, installation.settings.limits, app.id)
            ),
            data=DataStatus(**app_status.status_of(connection, app.id)),
            operations=tuple(OperationOfApp.of(row) for row in recent),
        )


def status(installation: Installation, name: str) -> DataStatus:
    """Return the status of a small app's data; raises NotFound."""
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        return DataStatus(**app_status.status_of(connection, app.id))


def statuses(installation: Installation, names: Collection[str]) -> dict[str, DataStatus]:
    """Return the status of those small apps that exist, by name."""
    with reading(installation.engine) as connection:
        now = read_clock(connection)
        return {
            app.name: DataStatus(**app_status.status_of(connection, app.id, now))
            for app in small_apps.listed(connection)
            if app.name in names
        }


def tag_of(document: Mapping[str, Any]) -> str:
    """Return what names a document: equal documents have equal tags."""
    text = json.dumps(document, ensure_ascii=False, sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def put(
    installation: Installation, name: str, document: object, expects: str | None, *, dry_run: bool
) -> AppliedApp:
    """Make a document the small app's, or create the small app if the request may.

    `expects` is the tag of the document that is replaced: empty for a new small app, None for any.
    Raises InvalidDocument, NotFound, and Outdated for another document.
    """
    models = _parsed(installation, [("", document)])
    if models[0][1].name != name:
        remedy = f"is not the name in the address, {name!r}; write the same"
        raise InvalidDocument([Problem("name", models[0][1].name, remedy)])
    with installation.engine.connect() as connection, connection.begin() as transaction:
        _check_tag(connection, name, expects)
        done = _apply(connection, installation, models)
        if dry_run:
            transaction.rollback()
    return _shown(installation, models, done)[0]


def _check_tag(connection: sa.Connection, name: str, expects: str | None) -> None:
    known = {app.name: app for app in small_apps.listed(connection)}
    if name not in known:
        if expects:
            raise Outdated(f'small app "{name}" is unknown; another request may have deleted it')
        return
    small_apps.lock(connection, known[name].id)
    now = tag_of(small_apps.document_of(connection, known[name].id))
    if expects not in {None, now}:
        raise Outdated(f'small app "{name}" was changed in the meantime; read it again')


def granted(installation: Installation, name: str) -> GrantedTo:
    """Return what a small app may reach; raises NotFound."""
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        return GrantedTo(name=name, grants=small_apps.grants_of(connection, app.id))


def grant(
    installation: Installation, name: str, changes: Mapping[str, Sequence[str]], *, all_: bool
) -> GrantedTo:
    """Change what a small app may reach, and return it; an unknown app is created, in UTC.

    `changes` replace the lists of their kinds; with `all_`, all that the settings allow is granted
    first, but no commands. Its documents are checked when they are next saved, and its operations
    when they run. Raises InvalidSmallApp for a name that no small app can have, and NotFound for an
    unknown one without changes.
    """
    with installation.engine.begin() as connection:
        if (all_ or changes) and not installation.is_bound:
            small_apps.ensure(connection, parse_small_app({"name": name}))
        app = find_app(connection, installation, name)
        small_apps.lock(connection, app.id)
        before = small_apps.grants_of(connection, app.id)
        if all_:
            # A program has to be named: it runs as the worker's account.
            before = replace(EVERYTHING, commands=before.commands)
        # An empty text grants nothing of its kind.
        lists = {kind: tuple(filter(None, names)) for kind, names in changes.items() if names}
        grants = replace(before, **lists)
        if all_ or lists:
            small_apps.set_grants(connection, app.id, grants)
            details = {app.name: asdict(grants)}
            audit.write(
                connection,
                small_app_id=app.id,
                actor=installation.actor,
                verb="app.granted",
                objects=details,
            )
    return GrantedTo(name=name, grants=grants)


def hook_secret(installation: Installation, name: str) -> HookSecret:
    """Return the secret of a small app's webhooks.

    Raises NotFound, and Refused without a secret or if a reference to one leads nowhere.
    """
    from tasks.notices.signing import secrets_of

    with reading(installation.engine) as connection:
        find_app(connection, installation, name)
    try:
        found = secrets_of(installation.settings.hook, name)
    except SecretMissing as error:
        raise Refused(f"SCHED_HOOK_SECRET: {error}") from None
    if not found:
        raise Refused("webhooks are not signed; set SCHED_HOOK_SECRET")
    return HookSecret(name=name, secret=found[0])


def create(installation: Installation, document: Document) -> AppliedApp:
    """Store a new small app; raises Refused for a name that is taken.

    `default`, and a small app that was only granted something, are taken once they have a document.
    """
    models = _parsed(installation, [document])
    with installation.engine.begin() as connection:
        name = models[0][1].name
        if small_apps.has_document(connection, name):
            raise Refused(
                f'small app "{name}" already exists; use `minutehand app apply` to change it'
            )
        done = _apply(connection, installation, models)
    return _shown(installation, models, done)[0]


def apply(
    installation: Installation, documents: Sequence[Document], *, dry_run: bool
) -> AppliedApps:
    """Create small apps, or update them to their documents, all or none."""
    models = _parsed(installation, documents)
    with installation.engine.connect() as connection, connection.begin() as transaction:
        done = _apply(connection, installation, models)
        if dry_run:
            transaction.rollback()
    return AppliedApps(_shown(installation, models, done))


def delete(installation: Installation, name: str, *, is_sure: bool) -> DeletedApp:
    """Delete a small app with its actions; raises Refused for active ones unless `is_sure`."""
    if name == DEFAULT_APP:
        raise Refused(f'small app "{DEFAULT_APP}" cannot be deleted; delete its actions')
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        ended = app_overview.active_names(connection, app.id, MOST_NAMED + 1)
    if ended and not is_sure:
        raise Refused(f'small app "{name}" has active actions: {listed(ended)}; add --yes')
    deleted = delete_app(
        installation.engine, ChangeContext(installation.actor, app, built_in_steps())
    )
    return DeletedApp(name=name, actions=len(deleted.names), cancelled=deleted.cancelled)


def _parsed(installation: Installation, documents: Sequence[Document]) -> list[Located]:
    """Return the models of all documents with their places; raises all problems at once.

    A document of a small app outside the request's scope is a problem.
    """
    from small_apps.mail.checks import checked_small_app

    problems: list[Problem] = []
    models: list[Located] = []
    seen: dict[str, str] = {}
    for where, document in documents:
        try:
            model = checked_small_app(document)
        except InvalidDocument as error:
            problems += located(where, error).problems
            continue
        models.append((where, model))
        first = seen.setdefault(model.name, where)
        if first != where:
            problems.append(Problem(f"{where}: name", model.name, f"is already in {first}"))
        if not installation.may_see(model.name):
            meant = f"is not the small app {installation.app_name!r}"
            problems.append(Problem(f"{where}: name", model.name, meant))
    if problems:
        raise InvalidDocument(problems)
    return models


def _apply(
    connection: sa.Connection, installation: Installation, models: Sequence[Located]
) -> list[app_apply.AppliedApp]:
    limits = installation.settings.limits
    done = app_apply.apply_all(connection, models, installation.actor, limits)
    for one in done:
        give_maintenance(connection, one.app, built_in_steps())
    return done


def _shown(
    installation: Installation, models: Sequence[Located], done: Sequence[app_apply.AppliedApp]
) -> tuple[AppliedApp, ...]:
    return tuple(
        AppliedApp(
            name=one.app.name,
            zone=one.app.zone,
            change=one.change,
            changes=tuple(one.changes),
            warnings=app_warnings(installation, model),
        )
        for (_, model), one in zip(models, done, strict=True)
    )
