"""Store revisions of new and of locked actions, many per statement."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias
from uuid import uuid4

import sqlalchemy as sa

from models.errors import NotFound, Refused
from models.sql import parts_of
from models.store import actions
from models.store.operations.reserve import Message
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from scheduler.changes import Change, Done, audit_changes
from scheduler.changes.cycles import check_cycles
from scheduler.changes.revisions import Next, Revision, close_revision, next_of, open_revisions
from scheduler.changes.validation import ChangeContext, Stored, check_revision
from scheduler.record import Recorded

ACTIONS_AT_ONCE = 1_000
MOST_NAMED = 3

Made: TypeAlias = tuple[list[Change], Sequence[Message]]


def is_same(row: Stored, revision: Revision) -> bool:
    """Return whether an action is what `revision` makes it."""
    columns = revision.columns
    is_alike = (row.name, row.document_hash) == (columns["name"], columns["document_hash"])
    return is_alike and row.quarantined is None


def unchanged(row: Stored, revision: Revision, author: ChangeContext) -> Change:
    """Return that an action stays as it is; raises Outdated."""
    check_revision(row, author)
    model, plan = revision.model, revision.plan
    return Change(row.action_uid, row.name, Done.UNCHANGED, row.revision, plan, model)


def store(
    connection: sa.Connection,
    new: Sequence[Revision],
    edits: Sequence[tuple[Stored, Revision]],
    author: ChangeContext,
    now: datetime,
    created_at: datetime | None = None,
) -> Made:
    """Store revisions of new actions and next ones of locked actions, in this order.

    All edits differ from what is stored. Other changes of the small app are kept out. Actions are
    created `now`, unless `created_at` says otherwise.
    """
    recorded = Recorded()
    following = [made for _, made in edits]
    watched = {one.columns["name"]: one.plan.watched for one in [*new, *following]}
    check_cycles(connection, author.small_app.id, watched)
    created = _insert_all(connection, new, author, now, created_at)
    changed, closed = [], []
    for row, revision in edits:
        _check_edit(connection, row, revision, author)
        one = close_revision(connection, row, revision, now)
        closed.append(one)
        recorded += one.recorded
        changed.append(_changed(one))
    for some in parts_of(closed, ACTIONS_AT_ONCE):
        # Many per statement: a tick waits for their cursors.
        open_revisions(connection, some, now)
        named = {one.row.action_uid: one.revision.columns["name"] for one in some}
        audit_changes(connection, author, "change", named)
    return [*created, *changed], recorded.messages


def _changed(one: Next) -> Change:
    revision, name = one.revision, one.revision.columns["name"]
    return Change(
        one.row.action_uid,
        name,
        Done.CHANGED,
        one.row.revision + 1,
        revision.plan,
        revision.model,
        before=one.row,
        sent=tuple(sorted(one.sent)),
        missed=one.recorded.missed,
    )


def _check_edit(
    connection: sa.Connection, row: Stored, revision: Revision, author: ChangeContext
) -> None:
    """Raise NotFound, Outdated or Refused if a locked action may not get a revision."""
    if row.deleted_at is not None:
        raise NotFound(f"action {row.name!r} was deleted")
    check_revision(row, author)
    name = revision.columns["name"]
    if name == row.name:
        return
    check_dependants(connection, row.small_app_id, row.name, "renamed")
    if actions.names_among(connection, row.small_app_id, [name]):
        raise Refused(f"another action is named {name!r}; choose another name")


def check_dependants(connection: sa.Connection, small_app_id: int, name: str, done: str) -> None:
    """Raise Refused if actions depend, by its name, on one that is to be `done`."""
    found = actions.dependants(connection, small_app_id, name, limit=MOST_NAMED)
    if found:
        names = ", ".join(repr(one.name) for one in found)
        raise Refused(
            f"{name!r} cannot be {done}: {names} would never be due again; change or delete "
            "what depends on it first"
        )


def _insert_all(
    connection: sa.Connection,
    new: Sequence[Revision],
    author: ChangeContext,
    now: datetime,
    created_at: datetime | None,
) -> list[Change]:
    """Store new actions, many per statement."""
    app_id = author.small_app.id
    if new:
        ceilings.check(connection, app_id, Ceiling.ACTIONS, author.limits, len(new))
    made = [
        Change(uuid4(), one.columns["name"], Done.CREATED, 1, one.plan, one.model) for one in new
    ]
    for some in parts_of(list(zip(made, new, strict=True)), ACTIONS_AT_ONCE):
        rows = {one.uid: dict(revision.columns) for one, revision in some}
        first = next_of(connection, {one.uid: one.plan for one, _ in some}, now)
        actions.insert(connection, app_id, rows, first, now, created_at)
        audit_changes(connection, author, "create", {one.uid: one.name for one, _ in some})
    return made
