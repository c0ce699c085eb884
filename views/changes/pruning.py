"""Keep an owner's actions to a set of documents: what the owner has beside them is deleted."""

from collections.abc import Sequence
from typing import TypeGuard
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.errors import Refused
from models.problems import listed
from models.store.actions import deletion
from models.values import composed
from runtime.database import reading
from scheduler.changes.deletion import delete_each
from scheduler.changes.drafts import rows_named
from views.installation import Installation
from views.view import View


class Pruned(View):
    """An action that applying documents would delete."""

    name: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Uid of the action.")
    revision: int = Field(description="Number of its last revision.")


def owned(
    connection: sa.Connection, installation: Installation, documents: Sequence[object], owner: str
) -> list[object]:
    """Return the documents; those without an owner get this one.

    Raises Refused if one of these would take over an action of another owner.
    """
    rows = rows_named(connection, documents, installation.author, locks=False)
    pairs = zip(documents, rows, strict=True)
    others = [
        f"{row.name} of {row.owner}"
        for document, row in pairs
        if row is not None and _lacks_owner(document) and row.owner not in {None, owner}
    ]
    if others:
        raise Refused(
            f"nothing is stored: actions of these names have other owners ({listed(others)}); write"
            " the owner into the document, or give it another name"
        )
    return [{**one, "owner": owner} if _lacks_owner(one) else one for one in documents]


def beside(
    connection: sa.Connection, installation: Installation, documents: Sequence[object], owner: str
) -> list[Pruned]:
    """Return the owner's actions that no document names."""
    given = [one.get("name") for one in documents if isinstance(one, dict)]
    names = {composed(name) for name in given if isinstance(name, str)}
    rows = deletion.owned_beside(connection, installation.small_app.id, owner, names)
    return [Pruned.of(row) for row in rows]


def prune(installation: Installation, documents: Sequence[object], owner: str) -> list[Pruned]:
    """Delete the owner's actions that no document names; return them as `beside` does."""
    with reading(installation.engine) as connection:
        found = beside(connection, installation, documents, owner)
    author = installation.remover_in(installation.small_app)
    done = delete_each(installation.engine, [one.uid for one in found], author)
    return [one for one in found if one.name in done.names]


def _lacks_owner(document: object) -> TypeGuard[dict[str, object]]:
    return isinstance(document, dict) and document.get("owner") is None
