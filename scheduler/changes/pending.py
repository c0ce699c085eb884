"""Evaluate an edit by plain SQL that no tick has adopted yet."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from minutebook.steps import Steps
from models.errors import InvalidAction
from models.store.actions import cursors
from scheduler.changes.revisions import Revision, revision_edited, was_edited


@dataclass(frozen=True, slots=True)
class Edit:
    """The revision that an edit makes; None and an error if it broke the document."""

    edited_at: datetime
    revision: Revision | None
    error: str | None = None


def pending_edit(connection: sa.Connection, uid: UUID, now: datetime, steps: Steps) -> Edit | None:
    """Return the edit that the next tick adopts, or None."""
    row = cursors.read(connection, uid)
    return None if row is None else edit_of(connection, row, now, steps)


def edit_of(
    connection: sa.Connection, row: cursors.Cursor, now: datetime, steps: Steps
) -> Edit | None:
    """Return the pending edit of a cursor's row, or None."""
    if row.edited_at is None or row.set_aside is not None or not was_edited(row, steps):
        return None
    edited_at = min(row.edited_at, now)
    try:
        return Edit(edited_at, revision_edited(connection, row, edited_at, steps))
    except (InvalidAction, ValueError) as error:
        return Edit(edited_at, None, " ".join(str(error).split()))
