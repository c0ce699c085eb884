"""Change an action: its old revision is decided up to now first, under the lock of a tick.

So no change eats a minute that was due, and none runs the past. Used by the CLI and the web.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from minutehand.steps import SmallApp
from models import tables
from models.action import ParseContext
from models.context import DEFAULT_TICK
from models.errors import InvalidAction, NotFound, Problem, Refused
from models.json_text import read_json
from models.plan import Plan
from models.sql import database_now, read_clock
from models.step_spec import StepSpec
from models.store import actions, cursors, operations
from models.store.outbox import Message
from scheduler.record import Recorded, advance, record
from scheduler.revise import Revision, adopt_edit, decide_until, revision_of, was_edited
from tasks.sending import send_reserved

Locked = sa.Row[Any]

ACTIONS_AT_ONCE = 1_000


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
    """Who changes, in which small app, the steps that the registry knows, and the daemon's tick."""

    name: str
    small_app: SmallApp
    steps: Mapping[str, StepSpec]
    tick: timedelta = DEFAULT_TICK


StoreAll = Callable[[sa.Engine, Sequence[object], Author], list[Changed]]


def create_all(engine: sa.Engine, documents: Sequence[object], author: Author) -> list[Changed]:
    """Store new actions, all or none.

    Raises InvalidDocument with all problems of all documents, or Refused when a name is taken.
    """
    with engine.begin() as connection:
        now = read_clock(connection)
        revisions = _revisions(documents, lambda _: _context(connection, author, now), author)
        return _insert_all(connection, revisions, author, now)


def apply_all(engine: sa.Engine, documents: Sequence[object], author: Author) -> list[Changed]:
    """Create the actions of the documents' names, or make them the next revisions; all or none.

    A document that says what is stored already changes nothing. Raises InvalidDocument with all
    problems of all documents.
    """
    changes: dict[int, Changed] = {}
    messages: list[Message] = []
    with engine.begin() as connection:
        # Locked before the clock is read: a tick that decides later minutes must come after.
        rows = _locked_rows(connection, documents, author)
        now = read_clock(connection)
        contexts = iter([_context(connection, author, now, row) for row in rows])
        revisions = _revisions(documents, lambda _: next(contexts), author)
        new = [number for number, row in enumerate(rows) if row is None]
        inserted = _insert_all(connection, [revisions[number] for number in new], author, now)
        changes |= zip(new, inserted, strict=True)
        for number, (row, revision) in enumerate(zip(rows, revisions, strict=True)):
            if row is not None:
                changes[number], due = _revise(connection, row, revision, author, now)
                messages += due
    send_reserved(engine, messages)
    return [changes[number] for number in range(len(documents))]


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
        locked = cursors.lock(connection, uid)
        now = read_clock(connection)
        row, _ = _settle(connection, locked, now)
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
    revision = revision_of(document, _context(connection, author, now, row), author.name)
    return _revise(connection, row, revision, author, now)


def _revise(
    connection: sa.Connection, row: Locked, revision: Revision, author: Author, now: datetime
) -> tuple[Changed, tuple[Message, ...]]:
    """Decide the current revision of a locked action up to `now`, then make `revision` its next."""
    row, recorded = _settle(connection, row, now)
    uid, name = row.action_uid, revision.columns["name"]
    if row.set_aside is None and revision.columns["document_hash"] == row.document_hash:
        unchanged = Changed(uid, name, revision.plan, Change.UNCHANGED, row.revision)
        return unchanged, recorded.messages
    if name != row.name and actions.uid_named(connection, row.small_app_id, name):
        raise Refused(f"another action is named {name!r}; choose another name")
    # After a clock that went back a little, or a tick ahead of it, more is decided than until now:
    # what has its outcome by the old revision gets no second one by the next.
    since = max(now, row.watermark)
    if row.set_aside is None:
        recorded += decide_until(connection, row, since)
    number = row.revision + 1
    actions.replace(connection, uid, number, dict(revision.columns), since)
    cursors.restart(connection, uid, since)
    _audit(connection, author, "change", uid, name)
    return Changed(uid, name, revision.plan, Change.CHANGED, number), recorded.messages


def _settle(connection: sa.Connection, row: Locked, now: datetime) -> tuple[Locked, Recorded]:
    """Take over an edit by plain SQL that no tick has seen yet, as a tick would.

    A broken one sets the action aside: the change that comes next puts it back. Returns the row as
    it is then. Raises NotFound for an action that was deleted meanwhile.
    """
    if row.deleted_at is not None:
        raise NotFound(f"action {row.name!r} was deleted")
    if row.edited_at is None or row.set_aside is not None or not was_edited(row):
        return row, Recorded()
    try:
        with connection.begin_nested():
            recorded, decided = adopt_edit(connection, row, now)
            recorded += record(connection, [decided])
            advance(connection, [decided])
    except (InvalidAction, ValueError) as error:
        recorded = decide_until(connection, row, min(row.edited_at, now))
        actions.set_aside(connection, row.action_uid, str(error))
    return cursors.lock(connection, row.action_uid), recorded


def _revisions(
    documents: Sequence[object], context_of: Callable[[object], ParseContext], author: Author
) -> list[Revision]:
    problems: list[Problem] = []
    revisions = []
    seen: dict[object, int] = {}
    for number, document in enumerate(documents):
        try:
            revision = revision_of(document, context_of(document), author.name)
            first = seen.setdefault(revision.columns["name"], number)
            if first != number:
                told = f"stands in document [{first}] already; give each its own name"
                raise InvalidAction([Problem("name", revision.columns["name"], told)])
            revisions.append(revision)
        except InvalidAction as error:
            where = f"[{number}] " if len(documents) > 1 else ""
            problems += [Problem(where + p.path, p.value, p.remedy) for p in error.problems]
    if problems:
        raise InvalidAction(problems)
    return revisions


def _locked_rows(
    connection: sa.Connection, documents: Sequence[object], author: Author
) -> list[Locked | None]:
    names = [document.get("name") if isinstance(document, dict) else None for document in documents]
    texts = [name for name in names if isinstance(name, str)]
    rows = cursors.lock_named(connection, author.small_app.id, texts)
    return [rows.get(name) if isinstance(name, str) else None for name in names]


def _insert_all(
    connection: sa.Connection, revisions: Sequence[Revision], author: Author, now: datetime
) -> list[Changed]:
    """Store new actions, many with each statement."""
    made = [Changed(uuid4(), one.columns["name"], one.plan, Change.CREATED, 1) for one in revisions]
    for start in range(0, len(made), ACTIONS_AT_ONCE):
        some = slice(start, start + ACTIONS_AT_ONCE)
        _insert_some(connection, made[some], revisions[some], author, now)
    return made


def _insert_some(
    connection: sa.Connection,
    made: Sequence[Changed],
    revisions: Sequence[Revision],
    author: Author,
    now: datetime,
) -> None:
    columns = [dict(one.columns) for one in revisions]
    authors = [one.pop("author") for one in columns]
    first = {"small_app_id": author.small_app.id, "revision": 1}
    insert = sa.insert(tables.actions).values(**first, created_at=now, updated_at=now)
    rows = [{"uid": one.uid, **values} for one, values in zip(made, columns, strict=True)]
    try:
        with connection.begin_nested():
            connection.execute(insert, rows)
    except sa.exc.IntegrityError:
        name = _taken_name(connection, [one.name for one in made], author)
        if name is None:
            raise
        raise Refused(
            f"an action named {name!r} is there already; use `minutehand action apply` to change it"
        ) from None
    connection.execute(
        sa.insert(tables.revisions).values(number=1, effective_from=now),
        [
            {
                "action_uid": one.uid,
                "document": values["document"],
                "plan": values["plan"],
                "author": name,
            }
            for one, values, name in zip(made, columns, authors, strict=True)
        ],
    )
    cursors.begin(connection, [one.uid for one in made], now)
    connection.execute(
        sa.insert(tables.audit).values(
            small_app_id=author.small_app.id,
            at=database_now(),
            actor=author.name,
            verb="action.create",
        ),
        [{"object": str(one.uid), "details": {"name": one.name}} for one in made],
    )


def _taken_name(connection: sa.Connection, names: Sequence[str], author: Author) -> str | None:
    """Return the first of these names that is stored already, or twice among them, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen or actions.uid_named(connection, author.small_app.id, name):
            return name
        seen.add(name)
    return None


def _context(
    connection: sa.Connection, author: Author, now: datetime, row: Locked | None = None
) -> ParseContext:
    return ParseContext(
        default_zone=author.small_app.zone,
        now=now,
        steps=author.steps,
        created_at=None if row is None else row.created_at,
        previous=None if row is None else _previous(connection, row),
        tick=author.tick,
    )


def _previous(connection: sa.Connection, row: Locked) -> Mapping[str, object] | None:
    """Return the document that is edited; of one that somebody broke, its last revision's."""
    if row.set_aside is not None:
        return actions.revision_document(connection, row.action_uid, row.revision)
    try:
        document = read_json(row.document)
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
