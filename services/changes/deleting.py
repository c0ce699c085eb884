"""Delete actions; their history stays."""

from typing import Annotated

from pydantic import Field

from models.errors import NotFound
from models.store.actions import SEE_ACTIONS
from runtime.database import reading
from scheduler.changes import deletion
from services.changes.result import Change, Changes, shown
from services.installation import Installation
from services.lookup import app_of, find
from services.verbs import EDIT, Verb

Owner = Annotated[str, Field(description="The owning application or person.")]


@Verb("delete_action", "DELETE /api/actions/{action=name}", EDIT)
def delete(installation: Installation, name: str, expects: int | None = None) -> Change:
    """Delete an action; its history stays.

    Raises Outdated if it is not at the revision `expects`.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
    remover = installation.remover_in(app, expects)
    return shown(installation, [deletion.delete(installation.engine, row["uid"], remover)], app)[0]


@Verb("delete_actions", "DELETE /api/actions", EDIT)
def delete_owned(installation: Installation, owner: Owner) -> Changes:
    """Delete all actions of an owner; their history stays.

    Raises NotFound for none.
    """
    remover = installation.remover_in(installation.small_app)
    deleted = deletion.delete_all(installation.engine, remover, owner)
    if not deleted:
        raise nothing_of(owner)
    return Changes(shown(installation, deleted))


def nothing_of(owner: str) -> NotFound:
    """Return the error that no action has this owner."""
    return NotFound(f"no action has the owner {owner!r}", SEE_ACTIONS)
