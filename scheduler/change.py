"""Change an action: its old revision is decided up to now first, under the lock of a tick.

So no change eats a minute that was due, and none runs the past. Used by the CLI and the web.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from minutehand.steps import SmallApp
from models.action import ParseContext
from models.errors import InvalidAction, Problem, Refused
from models.json_text import read_json
from models.plan import Plan
from models.sql import read_clock
from models.step_spec import StepSpec
from models.store import actions, cursors, operations
from models.store.outbox import Message
from scheduler.revise import Revision, decide_until, revision_of
from tasks.sending import send_reserved

Locked = sa.Row[Any]


class Change(StrEnum):
    """What became of a document that was applied."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Changed:
    """An action after a change: its uid, its plan, and what the change did."""

    uid: UUID
    name: str
    plan: Plan
    change: Change
    revision: int


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes, in which small app, and the steps that the registry knows."""

    name: str
    small_app: SmallApp
    steps: Mapping[str, StepSpec]


StoreAll = Callable[[sa.Engine, Sequence[object], Author], list[Changed]]


def create_all(engine: sa.Engine, documents: Sequence[object], author: Author) -> list[Changed]:
    """Store new actions, all or none.

    Raises InvalidDocument with all problems of all documents, or Refused when a name is taken.
    """
    with engine.begin() as connection:
        now = read_clock(connection)
        revisions = _revisions(documents, lambda _: _context(author, now), author)
        return [_insert(connection, revision, author, now) for revision in revisions]


def apply_all(engine: sa.Engine, documents: Sequence[object], author: Author) -> list[Changed]:
    """Create the actions of the documents' names, or make them the next revisions; all or none.

    A document that says what is stored already changes nothing. Raises InvalidDocument with all
    problems of all documents.
    """
    changes: list[Changed] = []
    messages: list[Message] = []
    with engine.begin() as connection:
        # Locked before the clock is read: a tick that decides later minutes must come after.
        rows = _locked_rows(connection, documents, author)
        now = read_clock(connection)
        contexts = iter([_context(author, now, row) for row in rows])
        revisions = _revisions(documents, lambda _: next(contexts), author)
        for row, revision in zip(rows, revisions, strict=True):
            if row is None:
                changes.append(_insert(connection, revision, author, now))
                continue
            changed, due = _revise(connection, row, revision, author, now)
            changes.append(changed)
            messages += due
    send_reserved(engine, messages)
    return changes


def set_active(engine: sa.Engine, uid: UUID, *, active: bool, author: Author) -> Changed:
    """Pause or resume an action: a revision like any other."""
    with engine.begin() as connection:
        row = cursors.lock(connection, uid)
        document = read_json(row.document)
        if not isinstance(document, dict):
            raise Refused(f"the document of {row.name!r} is broken: {row.set_aside}")
        changed, messages = _edit(connection, uid, {**document, "active": active}, author)
    send_reserved(engine, messages)
    return changed


def delete(engine: sa.Engine, uid: UUID, author: Author) -> int:
    """Delete an action softly; return how many unstarted operations were cancelled.

    What was due before is recorded, and cancelled with the rest; one that runs goes on to its end.
    """
    with engine.begin() as connection:
        row = cursors.lock(connection, uid)
        now = read_clock(connection)
        if row.set_aside is None:
            decide_until(connection, row, now)
        actions.mark_deleted(connection, uid, now)
        _audit(connection, author, "delete", uid, row.name)
        return operations.cancel_unstarted(connection, uid, "the action was deleted")


def _edit(
    connection: sa.Connection, uid: UUID, document: object, author: Author
) -> tuple[Changed, tuple[Message, ...]]:
    row = cursors.lock(connection, uid)
    now = read_clock(connection)
    revision = revision_of(document, _context(author, now, row), author.name)
    return _revise(connection, row, revision, author, now)


def _revise(
    connection: sa.Connection, row: Locked, revision: Revision, author: Author, now: datetime
) -> tuple[Changed, tuple[Message, ...]]:
    """Decide the current revision of a locked action up to `now`, then make `revision` its next."""
    uid, name = row.action_uid, revision.columns["name"]
    # An edit by plain SQL that no tick has taken over yet is a change that this one undoes.
    is_same = revision.columns["document_hash"] == row.document_hash and row.edited_at is None
    if row.set_aside is None and is_same:
        return Changed(uid, name, revision.plan, Change.UNCHANGED, row.revision), ()
    if name != row.name and actions.uid_named(connection, row.small_app_id, name):
        raise Refused(f"another action is named {name!r}; choose another name")
    recorded = decide_until(connection, row, now) if row.set_aside is None else None
    number = row.revision + 1
    actions.replace(connection, uid, number, dict(revision.columns), now)
    cursors.restart(connection, uid, now)
    _audit(connection, author, "change", uid, name)
    changed = Changed(uid, name, revision.plan, Change.CHANGED, number)
    return changed, recorded.messages if recorded else ()


def _revisions(
    documents: Sequence[object], context_of: Callable[[object], ParseContext], author: Author
) -> list[Revision]:
    problems: list[Problem] = []
    revisions = []
    for number, document in enumerate(documents):
        try:
            revisions.append(revision_of(document, context_of(document), author.name))
        except InvalidAction as error:
            where = f"[{number}] " if len(documents) > 1 else ""
            problems += [Problem(where + p.path, p.value, p.remedy) for p in error.problems]
    if problems:
        raise InvalidAction(problems)
    return revisions


def _locked_rows(
    connection: sa.Connection, documents: Sequence[object], author: Author
) -> list[Locked | None]:
    rows: list[Locked | None] = []
    for document in documents:
        name = document.get("name") if isinstance(document, dict) else None
        uid = actions.uid_named(connection, author.small_app.id, name)
        rows.append(None if uid is None else cursors.lock(connection, uid))
    return rows


def _insert(
    connection: sa.Connection, revision: Revision, author: Author, now: datetime
) -> Changed:
    name = revision.columns["name"]
    uid = uuid4()
    try:
        with connection.begin_nested():
            actions.insert(
                connection,
                uid=uid,
                small_app_id=author.small_app.id,
                revision=dict(revision.columns),
                now=now,
            )
    except sa.exc.IntegrityError:
        raise Refused(
            f"an action named {name!r} is there already; use `minutehand action apply` to change it"
        ) from None
    _audit(connection, author, "create", uid, name)
    return Changed(uid, name, revision.plan, Change.CREATED, 1)


def _context(author: Author, now: datetime, row: Locked | None = None) -> ParseContext:
    return ParseContext(
        default_zone=author.small_app.zone,
        now=now,
        steps=author.steps,
        created_at=None if row is None else row.created_at,
        previous=None if row is None else _previous(row.document),
    )


def _previous(text: str) -> Mapping[str, object] | None:
    try:
        document = read_json(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _audit(connection: sa.Connection, author: Author, verb: str, uid: UUID, name: str) -> None:
    actions.write_audit(
        connection,
        small_app_id=author.small_app.id,
        actor=author.name,
        verb=f"action.{verb}",
        subject=str(uid),
        details={"name": name},
    )
