"""All that the page of an action shows, deleted or not, read at once."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.errors import NotFound
from models.sql import read_clock
from models.store import actions
from runtime.database import reading
from services.actions import Revision
from services.actions.history import ActionHistory, history_in
from services.changes import add
from services.changes.result import Change
from services.installation import Installation
from services.lookup import app_of, find
from services.upcoming import Action, Occurrence, shown_in

# A page compares each with the one before.
MOST_REVISIONS = 20


@dataclass(frozen=True, slots=True)
class ActionPage:
    """An action, its next occurrences, its past by days of a zone, and its newest revisions.

    Of the revisions there is one more than MOST_REVISIONS if there are more.
    """

    shown: Action
    next: tuple[Occurrence, ...]
    past: ActionHistory
    revisions: tuple[Revision, ...]
    deleted_at: datetime | None


def action_page(
    installation: Installation, name: str, count: int, zone: str, before: int | None = None
) -> ActionPage:
    """Return an action with its next `count` occurrences; raises NotFound.

    Its revisions are those before the number `before`. A deleted one is named by its uid: it has a
    past and nothing to come.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, name, include_deleted=True)
        now = read_clock(connection)
        deleted_at: datetime | None = row["deleted_at"]
        shown = shown_in(connection, installation, row, now, count)
        past = history_in(connection, row, now, zone)
        newest = actions.revisions_of(connection, row["uid"], before, MOST_REVISIONS + 1)
    following = () if deleted_at else shown.next
    revisions = tuple(Revision(**one) for one in newest)
    return ActionPage(shown, following, past, revisions, deleted_at)


def revision_of(installation: Installation, name: str, number: int) -> Any:
    """Return the document of an action's revision; raises NotFound."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        document = actions.revision_document(connection, row["uid"], number)
    if document is None:
        raise NotFound(f"{row['name']!r} has no revision {number}")
    return document


def restore(installation: Installation, uid: str) -> Change:
    """Create a deleted action again, by its last document, in its small app.

    Raises NotFound, and Refused if its name is taken.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, uid, include_deleted=True)
        app = app_of(connection, installation, row)
        document = actions.revision_document(connection, row["uid"], row["revision"])
    if document is None:
        raise NotFound(f"no record is left of the action {uid}")
    there = installation.for_request(app.name, is_bound=True, bearer=installation.actor)
    return add(there, [document]).root[0]
