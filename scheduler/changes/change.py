"""Change actions: the old revision is first decided up to now, under the lock of a tick.

No change loses a due minute, and none runs the past.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from uuid import UUID, uuid4

import sqlalchemy as sa

from broker.sending import send_reserved
from models.action.document import ScheduledActionModel
from models.action.plan import Plan
from models.errors import Hint, NotFound, Outdated, Refused
from models.sql import parts_of, read_clock
from models.store import actions, audit, tenants
from models.store.operations.reserve import Message
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from runtime.db_retry import in_transaction
from scheduler.changes.circles import check_circles
from scheduler.changes.dependencies import follow_name
from scheduler.changes.drafts import (
    ChangedMeanwhile,
    Drafts,
    Rows,
    check_same,
    locked,
    rows_seen,
    validate_again,
)
from scheduler.changes.revisions import (
    Next,
    Revision,
    begin_all,
    conclude,
    dependencies_of,
    next_of,
)
from scheduler.changes.validation import (
    ChangeContext,
    Stored,
    Watch,
    check_revision,
    contexts_of,
    in_halves,
    revisions_of,
    unwatched,
)
from scheduler.record import Recorded
from scheduler.tz_release import hold_release

ACTIONS_AT_ONCE = 1_000


class Change(StrEnum):
    """The outcome of applying a document."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


class Switch(StrEnum):
    """Whether a change paused or resumed an action."""

    PAUSED = "paused"
    RESUMED = "resumed"


def switched_by(before: bool, after: bool) -> Switch | None:
    """Return what a change of `active` is, if it is one."""
    if before == after:
        return None
    return Switch.RESUMED if after else Switch.PAUSED


@dataclass(frozen=True, slots=True)
class Changed:
    """An action after a change; `model` is None if it is broken and was only paused."""

    uid: UUID
    name: str
    model: ScheduledActionModel | None
    plan: Plan
    change: Change
    revision: int
    # Whether the change paused or resumed an action that was there before.
    switched: Switch | None = None


StoreAll = Callable[..., list[Changed]]


def create_all(
    engine: sa.Engine, documents: Sequence[object], author: ChangeContext, watch: Watch = unwatched
) -> list[Changed]:
    """Store new actions, all or none; see `apply_all` for `watch`.

    Raises InvalidDocument with all problems of all documents, or Refused if a name is taken.
    """
    return _store_all(engine, documents, author, watch, creates=True)


def apply_all(
    engine: sa.Engine, documents: Sequence[object], author: ChangeContext, watch: Watch = unwatched
) -> list[Changed]:
    """Create the actions that documents name, or make the documents their next revisions.

    All or none; an equal document changes nothing. `watch` counts each document twice: when it is
    validated, and when it is stored. Raises InvalidDocument with all problems of all documents.
    """
    return _store_all(engine, documents, author, watch, creates=False)


def _store_all(
    engine: sa.Engine,
    documents: Sequence[object],
    author: ChangeContext,
    watch: Watch,
    *,
    creates: bool,
) -> list[Changed]:
    validated, is_stored = in_halves(watch)
    # Validated outside a transaction: many documents would hold locks, or idle, for too long.
    with engine.begin() as connection:
        seen = [None] * len(documents) if creates else rows_seen(connection, documents, author)
        since = read_clock(connection)
        contexts = contexts_of(seen, author, since)
    revisions = revisions_of(documents, contexts, author, validated)

    def store(connection: sa.Connection, *, locks_all: bool) -> tuple[list[Changed], list[Message]]:
        hold_release(connection)
        drafts = Drafts(documents, seen, list(revisions), since)
        # Locked before the clock is read: a tick that decides later minutes has to wait.
        rows = seen if creates else locked(connection, drafts, author, locks_all=locks_all)
        now = read_clock(connection)
        validate_again(drafts, rows, author, now)
        if not all(drafts.stays(number, row) for number, row in enumerate(rows)):
            check_changes(connection, author.small_app.id, rows, drafts.revisions)
        check_same(connection, drafts, rows)
        return _store(connection, rows, drafts, author, now, is_stored)

    try:
        changes, messages = in_transaction(engine, partial(store, locks_all=False))
    except ChangedMeanwhile:
        changes, messages = in_transaction(engine, partial(store, locks_all=True))
    send_reserved(engine, messages)
    return changes


def _store(
    connection: sa.Connection,
    rows: Rows,
    drafts: Drafts,
    author: ChangeContext,
    now: datetime,
    watch: Watch,
) -> tuple[list[Changed], list[Message]]:
    changes: dict[int, Changed] = {}
    messages: list[Message] = []
    revisions = drafts.revisions
    check_calendars(connection, revisions, author)
    new = [number for number, row in enumerate(rows) if row is None]
    firsts = [revisions[number] for number in new]
    total = len(rows)
    inserted = _insert_all(
        connection, firsts, author, now, drafts.since, lambda done, _: watch(done, total)
    )
    changes |= zip(new, inserted, strict=True)
    following: list[Next] = []
    for number, (row, revision) in enumerate(zip(rows, revisions, strict=True)):
        if row is None:
            continue
        if drafts.stays(number, row):
            changes[number] = _unchanged(row, revision, author)
        else:
            changes[number], due, begun = conclude_one(connection, row, revision, author, now)
            messages += due
            following += begun
        watch(len(changes), total)
    begin_changes(connection, following, author, now)
    return [changes[number] for number in range(total)], messages


def check_calendars(
    connection: sa.Connection, revisions: Sequence[Revision], author: ChangeContext
) -> None:
    """Raise Outdated if a calendar was removed since the documents were validated by it."""
    named = {name for one in revisions for name in one.plan.calendars}
    if not named:
        return
    tenants.hold(connection, author.small_app.id)
    gone = named - tenants.calendars_of(connection, author.small_app.id).keys()
    if gone:
        name = min(gone)
        raise Outdated(
            f"the calendar {name!r} was removed in the meantime; read the small app again"
        )


def conclude_one(
    connection: sa.Connection, row: Stored, revision: Revision, author: ChangeContext, now: datetime
) -> tuple[Changed, tuple[Message, ...], tuple[Next, ...]]:
    """Decide a locked action up to `now`; return what `revision` changes, which is to be stored."""
    if row.deleted_at is not None:
        raise NotFound(f"action {row.name!r} was deleted")
    if row.set_aside is None and revision.columns["document_hash"] == row.document_hash:
        return _unchanged(row, revision, author), (), ()
    check_revision(row, author)
    name, recorded = revision.columns["name"], Recorded()
    check_name(connection, row, name)
    if name != row.name:
        # While the action has its old name, by which the ends that make them due are found.
        recorded += follow_name(connection, row, name, author, now)
    following, before = conclude(connection, row, revision.columns, revision.plan, now)
    recorded += before
    changed = _changed(row.action_uid, revision, Change.CHANGED, row.revision + 1)
    switched = switched_by(row.active, revision.plan.active)
    return replace(changed, switched=switched), recorded.messages, (following,)


def _unchanged(row: Stored, revision: Revision, author: ChangeContext) -> Changed:
    check_revision(row, author)
    return _changed(row.action_uid, revision, Change.UNCHANGED, row.revision)


def begin_changes(
    connection: sa.Connection, following: Sequence[Next], author: ChangeContext, now: datetime
) -> None:
    """Store the next revisions of actions, many per statement: a tick waits for their cursors."""
    for some in parts_of(following, ACTIONS_AT_ONCE):
        begin_all(connection, some, now)
        names = {one.row.action_uid: one.columns["name"] for one in some}
        audit_changes(connection, author, "change", names)


def check_changes(
    connection: sa.Connection, small_app_id: int, rows: Rows, revisions: Sequence[Revision]
) -> None:
    """Raise InvalidAction if the actions would then start each other in a circle."""
    changes = dependencies_of(rows, revisions)
    check_circles(connection, small_app_id, changes, holds=True)


def check_name(connection: sa.Connection, row: Stored, name: str) -> None:
    """Raise Refused if another action of the small app has the name that `row` is to get."""
    if name != row.name and actions.uid_named(connection, row.small_app_id, name):
        raise Refused(f"another action is named {name!r}; choose another name")


def _changed(uid: UUID, made: Revision, what: Change, number: int) -> Changed:
    return Changed(uid, made.columns["name"], made.model, made.plan, what, number)


def _insert_all(
    connection: sa.Connection,
    revisions: Sequence[Revision],
    author: ChangeContext,
    now: datetime,
    since: datetime,
    watch: Watch,
) -> list[Changed]:
    """Store new actions, many per statement; their documents were validated at `since`."""
    if revisions:
        tenants.hold(connection, author.small_app.id)
        new = len(revisions)
        ceilings.check(connection, author.small_app.id, Ceiling.ACTIONS, author.limits, new)
    made = [_changed(uuid4(), one, Change.CREATED, 1) for one in revisions]
    done = 0
    for some in parts_of(list(zip(made, revisions, strict=True)), ACTIONS_AT_ONCE):
        rows = {one.uid: dict(revision.columns) for one, revision in some}
        first = next_of(connection, {one.uid: one.plan for one, _ in some}, now)
        if not actions.insert(connection, author.small_app.id, rows, first, now, since):
            raise _refused(connection, [one for one, _ in some], author)
        audit_changes(connection, author, "create", {one.uid: one.name for one, _ in some})
        done += len(some)
        watch(done, len(made))
    return made


def _refused(connection: sa.Connection, made: Sequence[Changed], author: ChangeContext) -> Refused:
    """Return the refusal that names the first taken name."""
    uids = {one.uid for one in made}

    def is_taken(name: str) -> bool:
        return actions.uid_named(connection, author.small_app.id, name) not in uids

    name = next(one.name for one in made if is_taken(one.name))
    return Refused(
        f"an action named {name!r} already exists",
        Hint("use `minutebook action apply` to change it", "open it to change it"),
    )


def audit_changes(
    connection: sa.Connection, author: ChangeContext, verb: str, changed: Mapping[UUID, str]
) -> None:
    """Write that the author has done `verb` to these actions, by uid with their names."""
    objects = {str(uid): {"name": name} for uid, name in changed.items()}
    audit.write(
        connection,
        small_app_id=author.small_app.id,
        actor=author.name,
        verb=f"action.{verb}",
        objects=objects,
    )
