"""Check and store actions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from minutebook.steps import SmallApp
from models.action.document import ScheduledActionModel
from models.action.schedule import NO_UID
from models.errors import InvalidAction, NotFound, Outdated, Problem
from models.sql import read_clock
from models.store.people import selection
from models.values import composed
from runtime.database import reading
from scheduler.changes import change, editing
from scheduler.changes.change import StoreAll
from scheduler.changes.circles import check_circles
from scheduler.changes.revisions import dependencies_of
from scheduler.changes.validation import ChangeContext, Watch, context_of, revisions_of, unwatched
from views.changes import pruning
from views.finding import app_of, find
from views.installation import Installation
from views.upcoming import SHOWN as FORESEEN
from views.upcoming import Described, Reach, Upcoming, upcoming_of
from views.verbs import ACTION, EDIT, Verb
from views.view import Listing, View
from views.warnings import action_warnings

# For more documents, the view does not say whom each reaches.
FEW = 10
SHOWN = 10

Details = Annotated[bool, Field(description="Include the next occurrences of each.")]
Prune = Annotated[
    str | None,
    Field(min_length=1, description="An owner; its actions that no document names are deleted."),
]
Author = tuple[ChangeContext, datetime]


class Changed(View):
    """The result of one document, or of pausing or resuming one action."""

    uid: UUID = Field(description="Uid of the action.")
    name: str = Field(description="Name of the action after the change.")
    change: str = Field(
        description="`created`, `changed` or `unchanged`; `deleted` where one is pruned."
    )
    revision: int = Field(description="The action's revision now.")
    switched: str | None = Field(
        None, description="`paused` or `resumed` if that changed, else null."
    )
    warnings: tuple[str, ...] = Field((), description="What its admin should check.")


class Stored(Changed):
    """The result of one of several documents."""

    upcoming: Upcoming | None = Field(
        None, description="Its rules and next occurrences, if details were asked for."
    )


class Changes(Listing[Stored]):
    """The results of documents, in their order."""


class Checked(Listing[Described]):
    """The meaning of documents, which are not stored."""


class Renamed(Changed):
    """An action that was given another name."""

    old_name: str = Field(description="Its name until now.")


@Verb("validate_actions", "POST /api/actions:validate", EDIT, kind=ACTION)
def check(installation: Installation, documents: Sequence[object]) -> Checked:
    """Check documents and return their meaning; nothing is stored.

    Raises InvalidDocument with all their problems.
    """
    return checked(installation, documents, author_now(installation))


def checked(
    installation: Installation,
    documents: Sequence[object],
    known: Author,
    count: int = FORESEEN,
) -> Checked:
    """Return what `check` does, each with its next `count` occurrences.

    `known` is the author and the instant of the request.
    """
    app = installation.small_app
    author, now = known
    contexts = [context_of(None, author, now)] * len(documents)
    made = revisions_of(documents, contexts, author)
    with reading(installation.engine) as connection:
        # As if they were applied: each in the place of the action of its name.
        changes = dependencies_of([None] * len(made), made)
        check_circles(connection, app.id, changes, holds=False)
        warnings = action_warnings(
            connection, app, [one.model for one in made], installation.settings
        )
        upcoming = [
            upcoming_of(connection, (app.id, NO_UID), one.plan, (now, app.zone), count)
            for one in made
        ]
        is_few = len(made) <= FEW
        reach = [_reach(connection, app, one.model) if is_few else None for one in made]
    return Checked(
        tuple(
            Described.of(when, name=one.model.name, warnings=found, reach=whom)
            for one, found, whom, when in zip(made, warnings, reach, upcoming, strict=True)
        )
    )


def author_now(installation: Installation) -> Author:
    """Return the context of a change in the request's small app, and the database's clock."""
    with reading(installation.engine) as connection:
        return installation.author, read_clock(connection)


def _reach(connection: sa.Connection, app: SmallApp, model: ScheduledActionModel) -> Reach | None:
    if model.recipients is None:
        return None
    count, first = selection.reached(connection, app.id, model.recipients, SHOWN)
    return Reach(count=count, first=tuple(first))


@Verb("add_actions", "POST /api/actions:add", EDIT, kind=ACTION, status=201)
def add(
    installation: Installation,
    documents: Sequence[object],
    *,
    details: Details = False,
    watch: Watch = unwatched,
) -> Changes:
    """Create actions, all or none; 409 if a name is taken.

    Raises InvalidDocument, or Refused for a name that is taken. With `details` each has its next
    occurrences.
    """
    return _store(installation, documents, change.create_all, watch, details=details)


@Verb("apply_actions", "POST /api/actions:apply", EDIT, kind=ACTION)
def apply(
    installation: Installation,
    documents: Sequence[object],
    *,
    details: Details = False,
    prune: Prune = None,
    watch: Watch = unwatched,
) -> Changes:
    """Create or change actions to their documents, all or none.

    See `add`. With `prune`, an owner, documents without an owner get it, and its actions that no
    document names are deleted. Then it raises Refused for a name of another owner's action.
    """
    if prune is None:
        return _store(installation, documents, change.apply_all, watch, details=details)
    with reading(installation.engine) as connection:
        mine = pruning.owned(connection, installation, documents, prune)
    made = _store(installation, mine, change.apply_all, watch, details=details)
    gone = pruning.prune(installation, mine, prune)
    own = {"change": "deleted", "switched": None, "warnings": (), "upcoming": None}
    return Changes((*made.root, *(Stored.of(one, **own) for one in gone)))


def _store(
    installation: Installation,
    documents: Sequence[object],
    store: StoreAll,
    watch: Watch,
    *,
    details: bool,
) -> Changes:
    installation.publish()
    made = store(installation.engine, documents, installation.author, watch)
    app = installation.small_app
    with reading(installation.engine) as connection:
        warnings = action_warnings(
            connection, app, [one.model for one in made if one.model], installation.settings
        )
        upcoming = _upcoming(connection, installation, made) if details else [None] * len(made)
    return Changes(
        tuple(
            Stored.of(one, warnings=found, upcoming=when)
            for one, found, when in zip(made, warnings, upcoming, strict=True)
        )
    )


def _upcoming(
    connection: sa.Connection, installation: Installation, made: Sequence[change.Changed]
) -> list[Upcoming]:
    app, now = installation.small_app, read_clock(connection)
    return [upcoming_of(connection, (app.id, one.uid), one.plan, (now, app.zone)) for one in made]


@Verb("put_action", "PUT /api/actions/{action=name}", EDIT, kind=ACTION)
def put(installation: Installation, name: str, document: object, expects: int | None) -> Changed:
    """Make a document the next revision of an action, or create the action of that name.

    `expects` is the revision that the change is made to; 0 for an action that must not exist, None
    for any. Raises InvalidAction, Refused, and Outdated for another revision.
    """
    installation.publish()
    try:
        with reading(installation.engine) as connection:
            row = find(connection, installation, name)
            app = app_of(connection, installation, row)
    except NotFound:
        return _create_named(installation, name, document, expects)
    if expects == 0:
        raise Outdated(f"an action named {row['name']!r} already exists")
    author = installation.author_in(app, expects)
    done = editing.replace_document(installation.engine, row["uid"], document, author)
    return _result(installation, app, done)


def _create_named(
    installation: Installation, name: str, document: object, expects: int | None
) -> Changed:
    if expects:
        raise Outdated(f"no action is named {name!r}; another request may have deleted it")
    given = document.get("name") if isinstance(document, dict) else None
    if given is not None and (not isinstance(given, str) or composed(given) != composed(name)):
        remedy = f"is not the name in the address, {name!r}; write the same"
        raise InvalidAction([Problem("name", given, remedy)])
    (done,) = change.create_all(installation.engine, [document], installation.author)
    return _result(installation, installation.small_app, done)


def _result(installation: Installation, app: SmallApp, done: change.Changed) -> Changed:
    with reading(installation.engine) as connection:
        warnings = action_warnings(
            connection, app, [done.model] if done.model else [], installation.settings
        )
    return Changed.of(done, warnings=warnings[0] if warnings else ())


@Verb("rename_action", "POST /api/actions/{action=name}:rename", EDIT)
def rename(
    installation: Installation,
    name: str,
    to: Annotated[str, Field(description="The new name.")],
    expects: int | None = None,
) -> Renamed:
    """Give an action another name; its uid and its history stay.

    Its watermark stays too. Raises InvalidAction, Refused for a taken name, and Outdated for
    another revision.
    """
    installation.publish()
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
    author = installation.author_in(app, expects)
    done = editing.rename(installation.engine, row["uid"], to, author)
    return Renamed.of(_result(installation, app, done), old_name=row["name"])
