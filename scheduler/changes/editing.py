"""Edit one action: replace its document, rename it, pause or resume it.

Renaming and pausing validate nothing: what the author may not write any more can be switched off.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan, UnreadablePlan
from models.errors import InvalidAction, NotFound, Problem
from models.sql import read_clock
from models.store.actions import cursors
from models.store.operations.reserve import Message
from models.stored import document_in
from models.values import composed, parse_name
from runtime.database import reading
from scheduler.changes import Change, in_run, keep_out_others
from scheduler.changes.batch import is_same, store, unchanged
from scheduler.changes.revisions import Revision, restated
from scheduler.changes.validation import ChangeContext, Drafts, Stored, check_revision


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
        revision = restated(row, _readable(row), author.name, author.steps, name=new)
        return _edit(connection, row, revision, author)

    return in_run(engine, renamed)


def set_active(
    engine: sa.Engine, uid: UUID, *, active: bool, author: ChangeContext, dry_run: bool = False
) -> Change:
    """Pause or resume an action by a new revision.

    Raises InvalidAction, to pause only if the stored document cannot be read. Celery rules are no
    matter: they were checked when it was saved, and are checked again when it is sent.
    """
    by = replace(author, celery=None)

    def switched(connection: sa.Connection) -> tuple[Change, Sequence[Message]]:
        row = _locked(connection, uid, author)
        if row.active == active and row.quarantined is None:
            return unchanged(row, Revision(None, _readable(row), {}), author), ()
        if active:
            document, now = document_in(row.document) | {"active": True}, read_clock(connection)
            drafts = Drafts([document], by, now, may_exist=True)
            return _edit(connection, row, _settled(connection, drafts, row), author)
        plan = replace(_readable(row), active=False)
        revision = restated(row, plan, author.name, author.steps, active=False)
        return _edit(connection, row, revision, author)

    return in_run(engine, switched, dry_run=dry_run)


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
    now = read_clock(connection)
    (changed,), messages = store(connection, [], [(row, revision)], author, now)
    return changed, messages


def _readable(row: Stored) -> Plan:
    """Return the plan of an action that makes a revision without being validated.

    Raises InvalidAction for another one: its document can be applied again, or it is deleted.
    """
    if document_in(row.document) and not isinstance(row.plan, UnreadablePlan):
        plan: Plan = row.plan
        return plan
    why = getattr(row.plan, "text", "the stored document cannot be read")
    raise InvalidAction([Problem("when", None, f"{why}; apply its document again")])
