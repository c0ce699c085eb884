"""The documents of a change beside their stored actions, which are locked where they change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from models.store.actions import cursors
from models.values import composed
from scheduler.changes.revisions import Revision, revision_of
from scheduler.changes.validation import ChangeContext, Stored, contexts_of, has_due_date_in

# The stored action of each document, None where there is none.
Rows = Sequence[Stored | None]


def rows_named(
    connection: sa.Connection, documents: Sequence[object], author: ChangeContext, *, locks: bool
) -> Rows:
    """Return the stored action of each document's name, or None."""
    return _by_name(
        documents, lambda names: cursors.named(connection, author.small_app.id, names, locks=locks)
    )


def rows_seen(
    connection: sa.Connection, documents: Sequence[object], author: ChangeContext
) -> Rows:
    """Return what each document is compared with, see `cursors.seen_named`, or None."""
    return _by_name(documents, partial(cursors.seen_named, connection, author.small_app.id))


def _by_name(
    documents: Sequence[object], read: Callable[[Sequence[str]], Mapping[str, Stored]]
) -> Rows:
    """Return what is read by the names of documents, None for one without a name or a row."""
    names = [document.get("name") if isinstance(document, dict) else None for document in documents]
    spelled = [composed(name) if isinstance(name, str) else None for name in names]
    rows = read([name for name in spelled if name is not None])
    return [None if name is None else rows.get(name) for name in spelled]


class ChangedMeanwhile(Exception):
    """An action whose document is the same was changed since it was compared."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """Documents, the stored actions as read at `since`, and the resulting revisions."""

    documents: Sequence[object]
    seen: Rows
    revisions: list[Revision]
    since: datetime

    @property
    def same(self) -> dict[int, Stored]:
        """The actions, by number, that have their documents already."""
        pairs = zip(self.seen, self.revisions, strict=True)
        return {
            number: row
            for number, (row, made) in enumerate(pairs)
            if row is not None
            and row.document_hash == made.columns["document_hash"]
            and row.set_aside is None
        }

    def stays(self, number: int, row: Stored | None) -> bool:
        """Return whether an action stays as it was seen, so that `row` is not locked."""
        return row is not None and row is self.seen[number]


def locked(
    connection: sa.Connection, drafts: Drafts, author: ChangeContext, *, locks_all: bool
) -> Rows:
    """Return the stored action of each document, locked; as it was seen if it stays the same.

    A tick waits for what is locked: not for thousands that stay, which `check_same` compares again.
    With `locks_all`, all are locked.
    """
    same = {} if locks_all else drafts.same
    others = [None if number in same else one for number, one in enumerate(drafts.documents)]
    rows = rows_named(connection, others, author, locks=True)
    return [same.get(number, row) for number, row in enumerate(rows)]


def check_same(connection: sa.Connection, drafts: Drafts, rows: Rows) -> None:
    """Raise ChangedMeanwhile unless what stays the same is as it was seen.

    To be called once all else is locked, and dependencies with it if there are some: the result is
    then that of one instant.
    """
    same = [row for number, row in enumerate(rows) if row and drafts.stays(number, row)]
    if not cursors.are_as_seen(connection, same):
        raise ChangedMeanwhile


def validate_again(drafts: Drafts, rows: Rows, author: ChangeContext, now: datetime) -> None:
    """Validate documents again if their action changed, or their due date came, since."""
    for number, (seen, row) in enumerate(zip(drafts.seen, rows, strict=True)):
        if drafts.stays(number, row):
            continue
        has_come = has_due_date_in(drafts.revisions[number].plan, drafts.since, now)
        if has_come or _basis(seen) != _basis(row):
            context = contexts_of([row], author, now, drafts.since)[0]
            document = drafts.documents[number]
            drafts.revisions[number] = revision_of(document, context, author.name)


def _basis(row: Stored | None) -> tuple[object, ...] | None:
    return None if row is None else (row.action_uid, row.revision, row.set_aside)
