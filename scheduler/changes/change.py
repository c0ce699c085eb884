"""Create actions, and make documents the next revisions of actions.

The old revision is first decided up to now, under the lock of a tick: no change loses a due minute,
and none runs the past.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from models.errors import Hint, Refused
from models.hints import listed
from models.sql import parts_of, read_clock
from models.store.actions import cursors
from models.store.actions.deletion import owned
from runtime.database import reading
from scheduler.changes import Change, in_run, keep_out_others
from scheduler.changes.batch import ACTIONS_AT_ONCE, Made, is_same, store, unchanged
from scheduler.changes.deletion import delete_locked
from scheduler.changes.validation import ChangeContext, Drafts, Stored


def create_all(
    engine: sa.Engine, documents: Sequence[object], author: ChangeContext, *, dry_run: bool = False
) -> list[Change]:
    """Store new actions, all or none.

    Raises InvalidDocument with all problems of all documents, or Refused if a name is taken.
    """
    drafts = Drafts(documents, author, _clock(engine))

    def created(connection: sa.Connection) -> Made:
        for row in _seen(connection, drafts, author).values():
            raise Refused(
                f"an action named {row.name!r} already exists",
                Hint("use `minutebook action apply` to change it", "open it to change it"),
            )
        return _stored(connection, author, drafts, {})

    return in_run(engine, created, dry_run=dry_run)


def apply_all(
    engine: sa.Engine,
    documents: Sequence[object],
    author: ChangeContext,
    *,
    dry_run: bool = False,
    prune: str | None = None,
) -> list[Change]:
    """Create the actions that documents name, or make the documents their next revisions.

    All or none; an equal document changes nothing. Raises InvalidDocument with all problems of all
    documents.

    With `prune`, an owner, documents without an owner get it, and its actions that no document
    names are deleted. Then it raises Refused for a name of another owner's action.
    """
    given = documents if prune is None else [_owned(one, prune) for one in documents]
    drafts = Drafts(given, author, _clock(engine), may_exist=True)

    def applied(connection: sa.Connection) -> Made:
        seen = _seen(connection, drafts, author)
        if prune is not None:
            _refuse_others(seen, documents, prune)
        drafts.settle(seen)
        made, messages = _stored(connection, author, drafts, seen)
        if prune is None:
            return made, messages
        named = {one.name for one in made}
        owns = owned(connection, author.small_app.id, prune)
        beside = [uid for uid, name in owns.items() if name not in named]
        return [*made, *delete_locked(connection, beside, author)], messages

    return in_run(engine, applied, dry_run=dry_run)


def _seen(connection: sa.Connection, drafts: Drafts, author: ChangeContext) -> dict[int, Stored]:
    """Return the actions that drafts name, not locked, by number; other changes are kept out."""
    keep_out_others(connection, author.small_app.id)
    names = [one.columns["name"] for one in drafts.revisions]
    seen = cursors.seen_named(connection, author.small_app.id, names)
    return {number: seen[name] for number, name in enumerate(names) if name in seen}


def _clock(engine: sa.Engine) -> datetime:
    with reading(engine) as connection:
        return read_clock(connection)


def _owned(document: object, owner: str) -> object:
    if not isinstance(document, dict) or document.get("owner") is not None:
        return document
    return {**document, "owner": owner}


def _refuse_others(rows: Mapping[int, Stored], documents: Sequence[object], owner: str) -> None:
    """Raise Refused if a document without an owner would take over another owner's action."""
    others = [
        f"{row.name} of {row.owner}"
        for number, row in rows.items()
        if documents[number] != _owned(documents[number], owner) and row.owner not in {None, owner}
    ]
    if others:
        raise Refused(
            f"nothing is stored: actions of these names have other owners ({listed(others)}); write"
            " the owner into the document, or give it another name"
        )


def _stored(
    connection: sa.Connection, author: ChangeContext, drafts: Drafts, seen: Mapping[int, Stored]
) -> Made:
    """Store the drafts whose actions, as they are seen, are not the same; none is locked yet.

    A tick waits for what is locked: not for thousands that stay the same.
    """
    revisions = drafts.revisions
    same = [number for number, row in seen.items() if is_same(row, revisions[number])]
    changes = {number: unchanged(seen[number], revisions[number], author) for number in same}
    edits = _locked(connection, {number: seen[number] for number in seen.keys() - changes.keys()})
    new = [number for number in range(len(revisions)) if number not in seen]
    # Locked before the clock is read: a tick that decides later minutes has to wait.
    now = read_clock(connection)
    drafts.check_due_dates({**dict.fromkeys(new), **edits}, now)
    made, messages = store(
        connection,
        [revisions[number] for number in new],
        [(row, revisions[number]) for number, row in edits.items()],
        author,
        now,
        drafts.created_at,
    )
    changes |= zip([*new, *edits], made, strict=True)
    return [changes[number] for number in range(len(revisions))], messages


def _locked(connection: sa.Connection, seen: Mapping[int, Stored]) -> dict[int, Stored]:
    """Return these actions, locked as a tick would, in the order of their documents."""
    uids = sorted((row.action_uid for row in seen.values()), key=lambda uid: uid.int)
    rows = {
        row.action_uid: row
        for some in parts_of(uids, ACTIONS_AT_ONCE)
        for row in cursors.lock_all(connection, some)
    }
    return {number: rows[seen[number].action_uid] for number in sorted(seen)}
