"""Adopt edits by plain SQL: what they change is validated here before anything decides by it.

A trigger of the database marks the cursor of an edited action (`edited_at`) and makes it due. Each
reader of such a row asks here: a tick adopts the edit, a change settles it first, and plans and
explanations show it as pending.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import BaseModel

from minutebook.steps import Steps, StepSpec
from models.action.document import (
    ParseContext,
    document_hash,
)
from models.action.plan import Broken, Plan
from models.errors import InvalidAction, NotFound
from models.json_text import read_json
from models.parsing import LEAST_TICK
from models.store import actions, tenants
from models.store.actions import cursors
from models.store.tenants.closing import closing
from runtime.database import is_of_no_row
from runtime.logs.events import EventLog
from scheduler.changes.circles import check_circles
from scheduler.changes.revisions import (
    Revision,
    decide_until,
    dependencies_of,
    not_ahead,
    revise,
    revision_of,
)
from scheduler.from_end import decide_next, ends_for
from scheduler.record import ActionRef, Decided, Recorded, advance, record

logger = EventLog("minutebook.tick")


class AnyParameters(BaseModel):
    """Parameters of a step that only workers know."""

    model_config = {"extra": "allow"}


def was_edited(row: sa.Row[Any], steps: Steps) -> bool:
    """Return whether the document or the column `active` differs from the revision."""
    if row.set_aside:
        return True
    try:
        document = read_json(row.document)
    except ValueError:
        return True
    return (
        isinstance(row.plan, Broken)
        or not isinstance(document, dict)
        or document_hash(document, steps) != row.document_hash
        or bool(row.active) != row.plan.active
    )


def has_to_be_adopted(row: sa.Row[Any], steps: Steps) -> bool:
    """Return whether a tick must first validate the document: it was edited, or is quarantined."""
    return (row.edited_at is not None or bool(row.set_aside)) and was_edited(row, steps)


def is_pending(row: sa.Row[Any], steps: Steps) -> bool:
    """Return whether an edit waits for the next tick; a quarantined action waits for a change."""
    return row.edited_at is not None and row.set_aside is None and was_edited(row, steps)


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
    if not is_pending(row, steps):
        return None
    edited_at = min(row.edited_at, now)
    try:
        return Edit(edited_at, revision_edited(connection, row, edited_at, steps))
    except (InvalidAction, ValueError) as error:
        return Edit(edited_at, None, " ".join(str(error).split()))


def adopt_edit(
    connection: sa.Connection, row: sa.Row[Any], now: datetime, steps: Steps
) -> tuple[Recorded, Decided]:
    """Decide the old document up to the edit, make the revision, and decide that up to `now`.

    Raises InvalidAction or ValueError for a broken document.
    """
    edited_at = min(row.edited_at or now, now)
    if row.edited_at is not None and row.edited_at >= row.watermark:
        # Another daemon may have decided beyond the old `now` of a daemon that was frozen.
        edited_at = max(edited_at, row.watermark)
    row = not_ahead(connection, row, edited_at)
    revision = revision_edited(connection, row, edited_at, steps)
    before = revise(connection, row, revision.columns, revision.plan, edited_at, now)
    name, number = revision.columns["name"], row.revision + 1
    action = ActionRef(row.action_uid, row.small_app_id, name, number)
    plan, uid = closing(connection, revision.plan, row.small_app_id), row.action_uid
    ends = ends_for(connection, {uid: plan}, now)
    decision = decide_next((plan, uid), edited_at, now, ends)
    return before, Decided(action, plan, decision)


def revision_edited(
    connection: sa.Connection, row: sa.Row[Any], edited_at: datetime, steps: Steps
) -> Revision:
    """Return the revision that an edit by plain SQL makes; raises as `adopt_edit`."""
    revision = revision_of(*_edited(connection, row, edited_at, steps), "plain SQL")
    changes = dependencies_of([row], [revision])
    # A tick that waited for others' changes could wait for ever.
    check_circles(connection, row.small_app_id, changes, holds=False)
    return revision


def settle(
    connection: sa.Connection, row: sa.Row[Any], now: datetime, steps: Steps
) -> tuple[sa.Row[Any], Recorded]:
    """Adopt a pending edit by plain SQL, as a tick would; return the row after that.

    A broken edit quarantines the action until its next change. Raises NotFound if the action was
    deleted.
    """
    if row.deleted_at is not None:
        raise NotFound(f"action {row.name!r} was deleted")
    if not is_pending(row, steps):
        return row, Recorded()
    try:
        with connection.begin_nested():
            recorded, decided = adopt_edit(connection, row, now, steps)
            recorded += record(connection, [decided])
            advance(connection, [decided])
    except Exception as error:  # the action's next change repairs any fault
        if is_of_no_row(error):
            raise
        recorded = set_aside(connection, row, error, now)
    return cursors.lock(connection, row.action_uid), recorded


def set_aside(
    connection: sa.Connection, row: sa.Row[Any], error: Exception, now: datetime
) -> Recorded:
    """Quarantine a locked action; record and return what was due before its edit."""
    if row.edited_at is None or row.set_aside:
        actions.set_aside(connection, row.action_uid, reason_of(error))
        return Recorded()
    until = min(row.edited_at, now)
    recorded = _decided_before(connection, row, until, now)
    # The repairing change begins there, even after the clock went back.
    until = max(until, row.watermark)
    move = {"action_uid": row.action_uid, "watermark": until, "next_occurrence_at": None}
    cursors.advance(connection, [move])
    actions.set_aside(connection, row.action_uid, reason_of(error))
    return recorded


def _decided_before(
    connection: sa.Connection, row: sa.Row[Any], until: datetime, now: datetime
) -> Recorded:
    try:
        with connection.begin_nested():
            return decide_until(connection, row, until, now)
    except Exception as error:  # the action is quarantined anyway
        if is_of_no_row(error):
            raise
        logger.exception(
            "edit_lost_occurrences",
            "action {action}: occurrences due before its edit are lost",
            row.action_uid,
        )
        return Recorded()


def reason_of(error: Exception) -> str:
    """Return the reason of a quarantine in one line."""
    text = "; ".join(str(error).splitlines())
    return f"{type(error).__name__}: {text[:1000]}"


def _edited(
    connection: sa.Connection, row: sa.Row[Any], edited_at: datetime, steps: Steps
) -> tuple[object, ParseContext]:
    document = read_json(row.document)
    is_switched = isinstance(row.plan, Plan) and bool(row.active) != row.plan.active
    if isinstance(document, dict) and is_switched:
        document = {**document, "active": bool(row.active)}
    app = tenants.by_id(connection, row.small_app_id)
    context = ParseContext(
        default_zone=app.zone,
        now=edited_at,
        created_at=row.created_at,
        previous=actions.revision_document(connection, row.action_uid, row.revision),
        steps=_steps_of_edit(document, steps),
        tick=LEAST_TICK,
        # The sender checks which tasks are allowed, the worker which programs.
        celery=None,
        commands=None,
        channels=None,
        calendars=tenants.calendars_of(connection, app.id),
    )
    return document, context


def _steps_of_edit(document: object, steps: Steps) -> dict[str, StepSpec]:
    """Return the built-in ones of `steps`, and the document's others with any parameters, heavy.

    A daemon does not know the others, and each process must adopt an edit alike.
    """
    operations = document.get("operations") if isinstance(document, dict) else None
    names = operations if isinstance(operations, dict) else {}
    others = {name: StepSpec(name, AnyParameters, heavy=True) for name in names}
    return others | {name: step for name, step in steps.items() if step.is_built_in}
