"""Store actions."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from models.errors import InvalidAction, NotFound, Outdated, Problem
from models.values import composed
from runtime.database import reading
from scheduler import changes
from scheduler.changes import change, editing
from scheduler.changes.validation import ChangeContext
from services.changes.result import Change, Changes, shown
from services.installation import Installation
from services.lookup import app_of, find
from services.verbs import ACTION, EDIT, Verb

Details = Annotated[
    bool, Field(description="Include the next occurrences of each, before and after.")
]
DryRun = Annotated[bool, Field(description="Do all of it, and roll it back.")]
Prune = Annotated[
    str | None,
    Field(min_length=1, description="An owner; its actions that no document names are deleted."),
]


@Verb("add_actions", "POST /api/actions:add", EDIT, kind=ACTION, status=201)
def add(
    installation: Installation,
    documents: Sequence[object],
    *,
    details: Details = False,
    dry_run: DryRun = False,
) -> Changes:
    """Create actions, all or none; 409 if a name is taken.

    Raises InvalidDocument, or Refused for a name that is taken. With `details` each has its next
    occurrences. With `dry_run`, the same is done and rolled back.
    """
    installation.publish()
    engine, author = installation.engine, installation.author
    made = change.create_all(engine, documents, author, dry_run=dry_run)
    return Changes(shown(installation, made, details=details, dry_run=dry_run))


@Verb("apply_actions", "POST /api/actions:apply", EDIT, kind=ACTION)
def apply(
    installation: Installation,
    documents: Sequence[object],
    *,
    details: Details = False,
    prune: Prune = None,
    dry_run: DryRun = False,
) -> Changes:
    """Create or change actions to their documents, all or none.

    See `add`. With `prune`, an owner, documents without an owner get it, and its actions that no
    document names are deleted. Then it raises Refused for a name of another owner's action.
    """
    installation.publish()
    engine, author = installation.engine, installation.author
    made = change.apply_all(engine, documents, author, dry_run=dry_run, prune=prune)
    return Changes(shown(installation, made, details=details, dry_run=dry_run))


@Verb("put_action", "PUT /api/actions/{action=name}", EDIT, kind=ACTION)
def put(
    installation: Installation,
    name: str,
    document: object,
    expects: int | None,
    *,
    dry_run: DryRun = False,
) -> Change:
    """Make a document the next revision of an action, or create the action of that name.

    `expects` is the revision that the change is made to; 0 for an action that must not exist, None
    for any. With `dry_run` it is rolled back, and the answer has details. Raises InvalidAction,
    Refused, and Outdated for another revision.
    """
    installation.publish()
    try:
        with reading(installation.engine) as connection:
            row = find(connection, installation, name)
            app = app_of(connection, installation, row)
    except NotFound:
        return _create_named(installation, name, document, expects, dry_run=dry_run)
    if expects == 0:
        raise Outdated(f"an action named {row['name']!r} already exists")
    author, uid = installation.author_in(app, expects), row["uid"]
    done = editing.replace_document(installation.engine, uid, document, author, dry_run=dry_run)
    return shown(installation, [done], app, details=dry_run, dry_run=dry_run)[0]


def _create_named(
    installation: Installation, name: str, document: object, expects: int | None, *, dry_run: bool
) -> Change:
    if expects:
        raise Outdated(f"no action is named {name!r}; another request may have deleted it")
    given = document.get("name") if isinstance(document, dict) else None
    if given is not None and (not isinstance(given, str) or composed(given) != composed(name)):
        remedy = f"is not the name in the address, {name!r}; write the same"
        raise InvalidAction([Problem("name", given, remedy)])
    return add(installation, [document], details=dry_run, dry_run=dry_run).root[0]


@Verb("rename_action", "POST /api/actions/{action=name}:rename", EDIT)
def rename(
    installation: Installation,
    name: str,
    to: Annotated[str, Field(description="The new name.")],
    expects: int | None = None,
) -> Change:
    """Give an action another name; its uid and its history stay.

    Its watermark stays too. Raises InvalidAction, Refused for a taken name, and Outdated for
    another revision.
    """
    return change_of(
        installation,
        name,
        expects,
        lambda uid, author: editing.rename(installation.engine, uid, to, author),
    )


def change_of(
    installation: Installation,
    name: str,
    expects: int | None,
    act: Callable[[UUID, ChangeContext], changes.Change],
    **own: Any,
) -> Change:
    """Return what `act` does to an action, which is given by its uid, and the author."""
    installation.publish()
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
    done = act(row["uid"], installation.author_in(app, expects))
    return shown(installation, [done], app)[0].model_copy(update=own)
