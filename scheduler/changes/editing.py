"""Edit one action: replace its document, rename it, pause or resume it.

Renaming and pausing validate nothing: what the author may not write any more can be switched off.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import UnreadablePlan, UnreadablePlanError
from models.errors import InvalidAction, NotFound, Problem
from models.sql import read_clock
from models.store import actions
from models.store.actions import cursors
from models.store.operations.reserve import Message
from models.stored import document_in
from models.values import composed, parse_name
from runtime.database import reading
from scheduler.changes import Change, Done, audit_changes, in_run, keep_out_others
from scheduler.changes.batch import Batch, is_same, store, unchanged
from scheduler.changes.revisions import Revision, restated
from scheduler.changes.validation import ChangeContext, Drafts, Stored, check_revision
from scheduler.quarantine import quarantine


def replace_document(
    engine: sa.Engine, uid: UUID, document: object, author: ChangeContext, *, dry_run: bool = False
) -> Change:
    """Make a document the next revision of an action, whatever its name.

    Raises InvalidAction, Refused for a taken name or a deleted action, and Outdated.
    """
    with reading(engine) as connection:
        now = read_clock(connection)
    drafts = Drafts([document], author, now, may_exist=True)

    def replaced(connection: sa.Connection) -> tuple[Change, Sequence[Message]]:
        row = _locked(connection, uid, author)
        return _edit(connection, row, _settled(connection, drafts, row), author)

    return in_run(engine, replaced, dry_run=dry_run)


def rename(engine: sa.Engine, uid: UUID, name: str, author: ChangeContext) -> Change:
    """Give an action another name by a new revision; its uid, watermark and history stay.

    Ids of operations are made of the uid, so no occurrence is lost or runs twice. Raises
    InvalidAction, Refused for a taken name or a deleted action, and Outdated.
    """
    try:
        new = composed(parse_name(name))
    except ValueError as error:
        raise InvalidAction([Problem("name", name, str(error))]) from None

    def renamed(connection: sa.Connection) -> tuple[Change, Sequence[Message]]:
        row = _locked(connection, uid, author)
        if (broken := _broken(row)) is not None:
            raise InvalidAction([Problem("when", None, f"{broken}; apply its document again")])
        revision = restated(row, row.plan, author.name, author.steps, name=new)
        return _edit(connection, row, revision, author)

    return in_run(engine, renamed)


def set_active(engine: sa.Engine, uid: UUID, *, active: bool, author: ChangeContext) -> Change:
    """Pause or resume an action by a new revision.

    One whose document makes no revision can only be paused. Celery rules are no matter: they were
    checked when it was saved, and are checked again when it is sent.
    """
    by = replace(author, celery=None)

    def switched(connection: sa.Connection) -> tuple[Change, Sequence[Message]]:
        row = _locked(connection, uid, author)
        broken = _broken(row)
        if row.active == active and row.quarantined is None and broken is None:
            return unchanged(row, Revision(None, row.plan, {}), author), ()
        if active:
            document, now = document_in(row.document) | {"active": True}, read_clock(connection)
            drafts = Drafts([document], by, now, may_exist=True)
            return _edit(connection, row, _settled(connection, drafts, row), author)
        if broken is not None:
            return _pause_broken(connection, row, broken, author), ()
        plan = replace(row.plan, active=False)
        revision = restated(row, plan, author.name, author.steps, active=False)
        return _edit(connection, row, revision, author)

    return in_run(engine, switched)


def _locked(connection: sa.Connection, uid: UUID, author: ChangeContext) -> Stored:
    """Return an action, locked, with other changes of its small app kept out."""
    keep_out_others(connection, author.small_app.id)
    row = cursors.lock(connection, uid)
    if row.deleted_at is not None:
        raise NotFound(f"action {row.name!r} was deleted")
    check_revision(row, author)
    return row


def _settled(connection: sa.Connection, drafts: Drafts, row: Stored) -> Revision:
    """Return the only draft as the revision of its locked action."""
    drafts.settle({0: row})
    if not is_same(row, drafts.revisions[0]):
        drafts.check_due_dates({0: row}, read_clock(connection))
    return drafts.revisions[0]


def _edit(
    connection: sa.Connection, row: Stored, revision: Revision, author: ChangeContext
) -> tuple[Change, Sequence[Message]]:
    """Make a revision the next one of a locked action, unless it is the same."""
    if is_same(row, revision):
        return unchanged(row, revision, author), ()
    batch = Batch([], [(row, revision)])
    (changed,), messages = store(connection, batch, author, read_clock(connection))
    return changed, messages


def _broken(row: Stored) -> str | None:
    """Return why an action makes no revision without being validated, None if it does."""
    if isinstance(row.plan, UnreadablePlan):
        return row.plan.text
    return None if document_in(row.document) else "the stored document cannot be read"


def _pause_broken(
    connection: sa.Connection, row: Stored, why: str, author: ChangeContext
) -> Change:
    """Pause and quarantine an action whose document makes no revision."""
    if row.quarantined is None:
        quarantine(connection, row.action_uid, UnreadablePlanError(why))
    actions.switch_off(connection, row.action_uid)
    audit_changes(connection, author, "change", {row.action_uid: row.name})
    return Change(row.action_uid, row.name, Done.CHANGED, row.revision, before=row)
