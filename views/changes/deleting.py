"""Delete actions; their history stays."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from models.errors import NotFound
from models.store.actions import SEE_ACTIONS
from runtime.database import reading
from scheduler.changes import deletion
from views.finding import app_of, find
from views.installation import Installation
from views.verbs import EDIT, Verb
from views.view import View

Owner = Annotated[str, Field(description="The owning application or person.")]


class DeletedAction(View):
    """An action that was deleted; its history stays."""

    uid: UUID = Field(description="Uid of the action.")
    name: str = Field(description="Name of the action.")
    cancelled: int = Field(description="Operations that had not started, and never will.")


class DeletedActions(View):
    """The actions of an owner, deleted; their history stays."""

    owner: str = Field(description="The owner whose actions were deleted.")
    deleted: tuple[str, ...] = Field(description="Their names, sorted.")
    cancelled: int = Field(description="Operations that had not started, and never will.")


@Verb("delete_action", "DELETE /api/actions/{action=name}", EDIT)
def delete(installation: Installation, name: str, expects: int | None = None) -> DeletedAction:
    """Delete an action; its history stays.

    Raises Outdated if it is not at the revision `expects`.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        remover = installation.remover_in(app_of(connection, installation, row), expects)
    cancelled = deletion.delete(installation.engine, row["uid"], remover)
    return DeletedAction(uid=row["uid"], name=row["name"], cancelled=cancelled)


@Verb("delete_actions", "DELETE /api/actions", EDIT)
def delete_owned(installation: Installation, owner: Owner) -> DeletedActions:
    """Delete all actions of an owner; their history stays.

    Raises NotFound for none.
    """
    deleted = deletion.delete_all(
        installation.engine, installation.remover_in(installation.small_app), owner
    )
    if not deleted.names:
        raise nothing_of(owner)
    names = tuple(sorted(deleted.names))
    return DeletedActions(owner=owner, deleted=names, cancelled=deleted.cancelled)


def nothing_of(owner: str) -> NotFound:
    """Return the error that no action has this owner."""
    return NotFound(f"no action has the owner {owner!r}", SEE_ACTIONS)
