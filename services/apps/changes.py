"""Create, replace and delete small apps."""

from collections.abc import Callable, Sequence
from typing import Annotated

import sqlalchemy as sa
from pydantic import Field

from models.errors import Hint, InvalidDocument, Outdated, Problem, Refused
from models.hints import listed
from models.store import tenants
from models.store.tenants import app_apply, app_overview, storing
from models.tenant.document import DEFAULT_APP, InvalidSmallApp, SmallAppModel, parse_small_app
from runtime.database import reading
from runtime.plug_ins import added
from scheduler.changes.default_actions import give_maintenance
from scheduler.changes.deletion import cancelled_by, delete_app
from scheduler.changes.validation import ChangeContext
from services.apps import tag_of
from services.files import Document, located
from services.installation import Installation
from services.lookup import find_app
from services.verbs import ADMINISTER, EDIT, SMALL_APP, Verb
from services.view import Listing, View
from services.warnings import app_warnings
from tasks.built_in import built_in_steps

MOST_NAMED = 12
Sure = Annotated[bool, Field(description="Also delete active actions.")]
# A small app is longer than an action, because it includes mails.
LONGEST_APP = 64 * 2**20

Located = tuple[str, SmallAppModel]


class AppliedApp(View):
    """The result of applying a small app's document."""

    name: str = Field(description="Name of the small app.")
    zone: str = Field(description="Its zone after the change.")
    change: str = Field(description="`created`, `changed` or `unchanged`.")
    changes: tuple[str, ...] = Field(description="What changed, in words.")
    warnings: tuple[str, ...] = Field(description="What its admin should check.")


class AppliedApps(Listing[AppliedApp]):
    """The result of each document, in order."""


class DeletedApp(View):
    """A small app that was deleted; history, users and data stay."""

    name: str = Field(description="Name of the small app.")
    actions: int = Field(description="Actions that were deleted with it.")
    cancelled: int = Field(description="Unstarted operations that were cancelled.")


@Verb("create_app", "POST /api/apps", EDIT, kind=SMALL_APP, status=201)
def create(installation: Installation, document: Document) -> AppliedApp:
    """Store a new small app; raises Refused for a name that is taken.

    `default`, and a small app that was added by its name, are taken once they have a document.
    """
    models = _parsed(installation, [document])
    name = models[0][1].name

    def check(connection: sa.Connection) -> None:
        if storing.has_document(connection, name):
            raise Refused(
                f'small app "{name}" already exists; use `minutebook app apply` to change it'
            )

    return _applied(installation, models, check)[0]


@Verb("apply_apps", "POST /api/apps:apply", EDIT, kind=SMALL_APP)
def apply(
    installation: Installation, documents: Sequence[Document], *, dry_run: bool = False
) -> AppliedApps:
    """Create small apps, or update them to their documents, all or none."""
    models = _parsed(installation, documents)
    return AppliedApps(_applied(installation, models, lambda _: None, dry_run=dry_run))


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

    def check(connection: sa.Connection) -> None:
        _check_tag(connection, name, expects)

    return _applied(installation, models, check, dry_run=dry_run)[0]


@Verb(
    "delete_app",
    "DELETE /api/apps/{app=name}?force=is_sure",
    ADMINISTER,
    is_of_installation=True,
)
def delete(installation: Installation, name: str, *, is_sure: Sure = False) -> DeletedApp:
    """Delete a small app and all of its actions; history, users and data stay.

    Raises Refused for active ones unless `is_sure`.
    """
    if name == DEFAULT_APP:
        raise Refused(f'small app "{DEFAULT_APP}" cannot be deleted; delete its actions')
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        ended = app_overview.names_in(connection, app.id, MOST_NAMED + 1)["actions"]
    if ended and not is_sure:
        raise Refused(
            f'small app "{name}" has active actions: {listed(ended)}',
            Hint("add --force", http="send force=true"),
        )
    deleted = delete_app(
        installation.engine, ChangeContext(installation.actor, app, built_in_steps())
    )
    return DeletedApp(name=name, actions=len(deleted), cancelled=cancelled_by(deleted))


def _check_tag(connection: sa.Connection, name: str, expects: str | None) -> None:
    known = {app.name: app for app in tenants.listed(connection)}
    if name not in known:
        if expects:
            raise Outdated(f'small app "{name}" is unknown; another request may have deleted it')
        return
    tenants.lock(connection, known[name].id)
    now = tag_of(tenants.document_of(connection, known[name].id))
    if expects == "":
        raise Outdated(f'small app "{name}" already exists')
    if expects not in {None, now}:
        raise Outdated(f'small app "{name}" was changed in the meantime; read it again')


def _parsed(installation: Installation, documents: Sequence[Document]) -> list[Located]:
    """Return the models of all documents with their places; raises all problems at once.

    A document of a small app outside the request's scope is a problem.
    """
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


def checked_small_app(document: object) -> SmallAppModel:
    """Return the small app of a document; raises InvalidSmallApp with all problems."""
    others = [problem for check in added("app_checks") for problem in check(document)]
    try:
        app = parse_small_app(document)
    except InvalidSmallApp as error:
        raise InvalidSmallApp([*error.problems, *others]) from None
    if others:
        raise InvalidSmallApp(others)
    return app


def _applied(
    installation: Installation,
    models: Sequence[Located],
    check: Callable[[sa.Connection], None],
    *,
    dry_run: bool = False,
) -> tuple[AppliedApp, ...]:
    """Store documents, unless `check` refuses that; a dry run is rolled back."""
    with installation.engine.connect() as connection, connection.begin() as transaction:
        check(connection)
        done = app_apply.apply_all(connection, models, installation.actor)
        for one in done:
            give_maintenance(connection, one.app, built_in_steps())
        if dry_run:
            transaction.rollback()
    return tuple(
        AppliedApp.of(
            one,
            name=one.app.name,
            zone=one.app.zone,
            warnings=app_warnings(installation, model),
        )
        for (_, model), one in zip(models, done, strict=True)
    )
