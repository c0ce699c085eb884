"""Store, pause and delete actions; the history of deleted ones stays."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from models.action.health import NOTHING_TO_COME
from models.errors import InvalidAction, NotFound, Outdated, Problem
from models.sql import read_clock
from models.store.tenants.closing import closing
from models.values import composed
from runtime.database import reading
from scheduler import changes
from scheduler.changes import change, deletion, editing
from scheduler.changes.validation import ChangeContext
from scheduler.occurrence import next_occurrences
from services.changes.result import Change, Changes, shown
from services.installation import Installation
from services.lookup import app_of, find
from services.verbs import ACTION, EDIT, OPERATE, Verb

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


@Verb("pause_action", "POST /api/actions/{action=name}:pause", OPERATE)
def pause(
    installation: Installation, name: str, expects: int | None = None, *, dry_run: DryRun = False
) -> Change:
    """Pause an action.

    Raises Outdated if it is not at the revision `expects`.
    """
    return switch(installation, name, expects, active=False, dry_run=dry_run)


@Verb("resume_action", "POST /api/actions/{action=name}:resume", OPERATE)
def resume(
    installation: Installation, name: str, expects: int | None = None, *, dry_run: DryRun = False
) -> Change:
    """Resume an action.

    Raises Outdated if it is not at the revision `expects`.
    """
    return switch(installation, name, expects, active=True, dry_run=dry_run)


def switch(
    installation: Installation, name: str, expects: int | None, *, active: bool, dry_run: bool
) -> Change:
    """Pause or resume an action, and warn if nothing is to come."""
    ends: list[str] = []

    def switched(uid: UUID, author: ChangeContext) -> changes.Change:
        done = editing.set_active(
            installation.engine, uid, active=active, author=author, dry_run=dry_run
        )
        if active and not _has_more(installation, done, author):
            ends.append(NOTHING_TO_COME)
        return done

    return change_of(installation, name, expects, switched).model_copy(
        update={"warnings": tuple(ends)}
    )


def _has_more(installation: Installation, done: changes.Change, author: ChangeContext) -> bool:
    """Return whether an action may be due again."""
    if done.plan.on_event is not None or done.plan.from_end:
        return True
    with reading(installation.engine) as connection:
        plan = closing(connection, done.plan, author.small_app.id)
        return bool(next_occurrences(plan, done.uid, read_clock(connection), 1))


@Verb("delete_action", "DELETE /api/actions/{action=name}", EDIT)
def delete(
    installation: Installation, name: str, expects: int | None = None, *, dry_run: DryRun = False
) -> Change:
    """Delete an action; its history stays.

    Raises Outdated if it is not at the revision `expects`.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
    remover = installation.remover_in(app, expects)
    deleted = deletion.delete(installation.engine, row["uid"], remover, dry_run=dry_run)
    return shown(installation, [deleted], app)[0]
