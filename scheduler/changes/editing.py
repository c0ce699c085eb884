"""Edit one action: replace its document, rename it, pause or resume it.

A broken action, whose document makes no revision, can be paused, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_reserved
from models.action.plan import NOTHING_PLANNED, Broken
from models.errors import InvalidAction, Outdated, Refused
from models.sql import read_clock
from models.store import actions
from models.store.actions import cursors
from models.store.operations.reserve import Message
from models.stored import document_in
from runtime.db_retry import in_transaction
from scheduler.changes.change import (
    Change,
    Changed,
    audit_changes,
    begin_changes,
    check_calendars,
    check_changes,
    conclude_one,
)
from scheduler.changes.revisions import revision_of
from scheduler.changes.validation import ChangeContext, Stored, contexts_of
from scheduler.quarantine import quarantine
from scheduler.tz_release import hold_release


def replace_document(
    engine: sa.Engine, uid: UUID, document: object, author: ChangeContext
) -> Changed:
    """Make a document the next revision of an action, whatever its name.

    Raises InvalidAction, Refused for a taken name or a deleted action, and Outdated.
    """
    changed, messages = in_transaction(engine, lambda c: _edit(c, uid, document, author))
    send_reserved(engine, messages)
    return changed


def rename(engine: sa.Engine, uid: UUID, name: str, author: ChangeContext) -> Changed:
    """Give an action another name by a new revision; its uid, watermark and history stay.

    Ids of operations are made of the uid, so no occurrence is lost or runs twice. Raises
    InvalidAction, Refused for a taken name or a deleted action, and Outdated.
    """

    def renamed(connection: sa.Connection) -> tuple[Changed, Sequence[Message]]:
        document = document_in(cursors.lock(connection, uid).document)
        # Celery rules were checked when it was saved, and are checked again when it is sent.
        by = replace(author, celery=None)
        return _edit(connection, uid, {**document, "name": name}, by)

    changed, messages = in_transaction(engine, renamed)
    send_reserved(engine, messages)
    return changed


def set_active(engine: sa.Engine, uid: UUID, *, active: bool, author: ChangeContext) -> Changed:
    """Pause or resume an action by a new revision."""

    def switched(connection: sa.Connection) -> tuple[Changed, Sequence[Message]]:
        hold_release(connection)
        row = cursors.lock(connection, uid)
        by = replace(author, celery=None)
        try:
            return _edit(connection, uid, {**document_in(row.document), "active": active}, by)
        except Outdated:
            raise
        except (InvalidAction, Refused) as error:
            if active or row.deleted_at is not None or not _is_broken(row):
                raise
            return _pause_broken(connection, row, error, author), ()

    changed, messages = in_transaction(engine, switched)
    send_reserved(engine, messages)
    return changed


def _is_broken(row: Stored) -> bool:
    return row.set_aside is not None or isinstance(row.plan, Broken)


def _pause_broken(
    connection: sa.Connection, row: Stored, error: Exception, author: ChangeContext
) -> Changed:
    """Pause and quarantine an action whose document makes no revision."""
    if row.set_aside is None:
        quarantine(connection, row.action_uid, error)
    actions.switch_off(connection, row.action_uid)
    audit_changes(connection, author, "change", {row.action_uid: row.name})
    return Changed(row.action_uid, row.name, None, NOTHING_PLANNED, Change.CHANGED, row.revision)


def _edit(
    connection: sa.Connection, uid: UUID, document: object, author: ChangeContext
) -> tuple[Changed, tuple[Message, ...]]:
    hold_release(connection)
    row = cursors.lock(connection, uid)
    now = read_clock(connection)
    context = contexts_of([row], author, now)[0]
    revision = revision_of(document, context, author.name)
    check_calendars(connection, [revision], author)
    check_changes(connection, row.small_app_id, [row], [revision])
    changed, messages, following = conclude_one(connection, row, revision, author, now)
    begin_changes(connection, following, author, now)
    return changed, messages
