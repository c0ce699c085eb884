"""What a text may mean anywhere: runs, actions, tasks, owners, users, errors."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.column_types import storable
from models.errors import Refused
from models.sql import read_clock
from models.store import operations
from models.store.actions import lookup
from models.store.operations.pages.errors import with_error
from models.store.people import lookup as people
from runtime.database import reading
from views.actions.search import MOST_WORDS
from views.installation import Installation
from views.operations import OperationRow, views_of
from views.verbs import READ, Verb
from views.view import Instant, View

# Of each kind.
MOST_FOUND = 10
# How far back errors are searched.
ERRORS_BACK = timedelta(days=7)
LONGEST_TEXT = 200
# Four hexadecimal digits or more may begin the id of a run.
UUID_DIGITS = 32
_DIGITS = re.compile(r"[0-9a-f]{4}[0-9a-f-]{0,32}", re.IGNORECASE | re.ASCII)


class FoundName(View):
    """An action that was found by its name."""

    uid: UUID = Field(description="Uid of the action.")
    name: str = Field(description="Name of the action.")
    app: str = Field(description="Its small app.")
    owner: str | None = Field(description="The owning application or person.")


class FoundTask(View):
    """An action that was found by the task that it sends."""

    uid: UUID = Field(description="Uid of the action.")
    name: str = Field(description="Name of the action.")
    app: str = Field(description="Its small app.")
    task: str = Field(description="The task, as its application registers it.")
    application: str | None = Field(description="Its application; null for the default one.")


class FoundOwner(View):
    """An owner of actions."""

    name: str = Field(description="The owner.")
    actions: int = Field(description="How many actions the owner has.")


class FoundUser(View):
    """A user of a small app."""

    id: str = Field(description="Id of the user.")
    app: str = Field(description="The user's small app.")
    email: str | None = Field(description="The address that mails go to.")
    name: str | None = Field(description="The name for people.")


class Found(View):
    """What a search found, at most ten of each kind."""

    text: str = Field(description="What was searched.")
    runs: tuple[OperationRow, ...] = Field(description="Runs whose ids begin so.")
    actions: tuple[FoundName, ...] = Field(description="Actions with each word in their names.")
    tasks: tuple[FoundTask, ...] = Field(description="Actions with it in the name of their task.")
    owners: tuple[FoundOwner, ...] = Field(description="Owners with it in their names.")
    users: tuple[FoundUser, ...] = Field(
        description="Users with it in id, address or name, among the first 100,000."
    )
    errors: tuple[OperationRow, ...] = Field(
        description="Runs that failed, were missed or ended partial with it in the error, newest "
        "first, among the newest 10,000."
    )
    errors_since: Instant = Field(description="Errors are searched in runs that ended since then.")
    more: tuple[str, ...] = Field(description="The kinds of which there are more than are here.")


@Verb("search", "GET /api/search", READ)
def search(
    installation: Installation,
    text: Annotated[str, Field(description="A part of a name, an error or an id.")],
) -> Found:
    """Find actions, runs, tasks, owners, users and errors by a text, in all small apps or one."""
    asked = storable(text.strip())
    if not 0 < len(asked) <= LONGEST_TEXT:
        raise Refused(f"text has {len(asked)} characters; write 1 to {LONGEST_TEXT}")
    scope, limit = installation.scope, MOST_FOUND + 1
    with reading(installation.engine) as connection:
        since = read_clock(connection) - ERRORS_BACK
        tasks, may_be_more = lookup.sending(connection, scope, asked, limit)
        found: dict[str, Sequence[Any]] = {
            "runs": _beginning(connection, installation, asked),
            "actions": lookup.named(connection, scope, asked.split()[:MOST_WORDS], limit),
            "tasks": tasks,
            "owners": lookup.owners(connection, scope, asked, limit),
            "users": people.like(connection, scope, asked, limit),
            "errors": with_error(connection, scope, asked, since, limit),
        }
        rows = _rows(connection, found["runs"], found["errors"])
    is_cut = {kind: len(some) > MOST_FOUND for kind, some in found.items()}
    is_cut["tasks"] |= may_be_more
    return Found(
        text=asked,
        runs=_shown(rows, found["runs"]),
        actions=tuple(map(FoundName.of, found["actions"][:MOST_FOUND])),
        tasks=tuple(map(FoundTask.of, found["tasks"][:MOST_FOUND])),
        owners=tuple(map(FoundOwner.of, found["owners"][:MOST_FOUND])),
        users=tuple(map(FoundUser.of, found["users"][:MOST_FOUND])),
        errors=_shown(rows, found["errors"]),
        errors_since=since,
        more=tuple(kind for kind in found if is_cut[kind]),
    )


def _beginning(connection: sa.Connection, installation: Installation, text: str) -> list[UUID]:
    digits = text.replace("-", "")
    if not _DIGITS.fullmatch(text) or len(digits) > UUID_DIGITS:
        return []
    return operations.beginning_with(connection, digits, installation.scope, MOST_FOUND + 1)


def _rows(connection: sa.Connection, *ids: Sequence[UUID]) -> dict[UUID, OperationRow]:
    every = {id for some in ids for id in some}
    found = operations.by_ids(connection, every) if every else ()
    return {row.id: row for row in views_of(found)}


def _shown(rows: dict[UUID, OperationRow], ids: Sequence[UUID]) -> tuple[OperationRow, ...]:
    return tuple(rows[id] for id in ids[:MOST_FOUND] if id in rows)
