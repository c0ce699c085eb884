"""Make revisions of actions, also from edits by plain SQL."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel

from minutebook.steps import Steps, StepSpec
from models.action import (
    ParseContext,
    ScheduledActionModel,
    document_hash,
    parse_action,
    plan_of,
    stored_document,
)
from models.action.plan import Broken, Plan
from models.errors import NotFound
from models.job import id_of
from models.json_text import read_json
from models.parsing import LEAST_TICK
from models.store import actions, clock_steps, tenants
from models.store.actions import cursors
from runtime.database import is_of_no_row
from runtime.logs.events import EventLog
from scheduler.changes.circles import Dependency, check_circles
from scheduler.decision import decide
from scheduler.foresee import foresee, on_its_way_since
from scheduler.record import ActionRef, Decided, Recorded, State, advance, record

logger = EventLog("minutebook.tick")


class AnyParameters(BaseModel):
    """Parameters of a step that only workers know."""

    model_config = {"extra": "allow"}


@dataclass(frozen=True, slots=True)
class Revision:
    """A validated document as it is stored."""

    model: ScheduledActionModel
    plan: Plan
    columns: dict[str, Any]


def revision_of(document: object, context: ParseContext, author: str) -> Revision:
    """Return the revision that `document` makes; raises InvalidAction with all problems."""
    if context.is_paused and isinstance(document, dict):
        document = {"active": False, **document}
    model = parse_action(document, context)
    stored = stored_document(model)
    plan = plan_of(model)
    return Revision(
        model,
        plan,
        {
            "name": model.name,
            "owner": model.owner,
            "active": plan.active,
            "document": json.dumps(stored, ensure_ascii=False),
            "document_hash": document_hash(stored, context.steps),
            "plan": plan.to_json(),
            "event": plan.on_event.event if plan.on_event else None,
            "look_back_s": plan.longest_look_back_s,
            "priority": plan.policy.priority,
            "job_id": None if plan.job is None else id_of(plan.job.url),
            "author": author,
        },
    )


def action_ref(row: sa.Row[Any]) -> ActionRef:
    """Return the action of a cursor's row, under its revision."""
    return ActionRef(row.action_uid, row.small_app_id, row.name, row.revision)


def state_of(row: sa.Row[Any], plan: Plan) -> State:
    """Return the state of a cursor's row, which `plan` decides."""
    return State(action_ref(row), plan, row.effective_from)


def decide_until(
    connection: sa.Connection,
    row: sa.Row[Any],
    instant: datetime,
    now: datetime | None = None,
) -> Recorded:
    """Decide and record an action's current revision up to `instant`; the cursor is not moved.

    The look-back ends at `now`, by default at `instant`. A broken plan decides nothing.
    """
    plan, now = row.plan, instant if now is None else max(now, instant)
    if isinstance(plan, Broken):
        return Recorded()
    recorded, state = Recorded(), state_of(row, plan)
    for decision in foresee(connection, state, (row.watermark, instant, now)):
        recorded += record(connection, [Decided(state.action, plan, decision)])
    return recorded


@dataclass(frozen=True, slots=True)
class Next:
    """The next revision of a locked action, which was decided up to its beginning."""

    row: sa.Row[Any]
    columns: Mapping[str, Any]
    # An event action that continues looks further back, for late events.
    effective_from: datetime


def revise(
    connection: sa.Connection,
    row: sa.Row[Any],
    columns: Mapping[str, Any],
    plan: Plan,
    instant: datetime,
    now: datetime | None = None,
) -> Recorded:
    """Decide a locked action up to `instant`, then make `columns` and `plan` its next revision.

    The look-back ends at `now`, by default at `instant`. A quarantined action was decided before.
    """
    following, recorded = conclude(connection, row, columns, plan, instant, now)
    begin_all(connection, [following], instant)
    return recorded


def conclude(
    connection: sa.Connection,
    row: sa.Row[Any],
    columns: Mapping[str, Any],
    plan: Plan,
    instant: datetime,
    now: datetime | None = None,
) -> tuple[Next, Recorded]:
    """Decide a locked action up to `instant`; return its next revision, which is not stored yet."""
    row = not_ahead(connection, row, instant)
    recorded = Recorded() if row.set_aside else decide_until(connection, row, instant, now)
    effective_from = instant
    if goes_on(row, plan):
        on_its_way = on_its_way_since(connection, state_of(row, row.plan), now or instant)
        effective_from = min(instant, on_its_way)
    return Next(row, columns, effective_from), recorded


def begin_all(connection: sa.Connection, some: Sequence[Next], instant: datetime) -> None:
    """Store revisions of actions that were decided up to `instant`, where they begin."""
    made = {one.row.action_uid: {**one.columns, "number": one.row.revision + 1} for one in some}
    actions.replace_all(connection, made, instant)
    starts = {one.row.action_uid: one.effective_from for one in some}
    cursors.restart_all(connection, starts, instant)


def goes_on(row: sa.Row[Any], next_plan: Plan) -> bool:
    """Return whether an event action continues with `next_plan`, being due at the same events.

    Its window then reaches back before the change, so that late events are not lost. Otherwise,
    and when an action is resumed, it begins again.
    """
    plan = row.plan
    if isinstance(plan, Broken):
        return False
    is_on_event = plan.active and plan.on_event is not None and row.set_aside is None
    return is_on_event and plan.has_same_occurrences(next_plan)


def not_ahead(connection: sa.Connection, row: sa.Row[Any], now: datetime) -> sa.Row[Any]:
    """Return a locked cursor whose watermark is at most `now`, even after the clock went back."""
    if row.watermark <= now:
        return row
    clock_steps.wind_back(connection, now, [row.action_uid])
    return cursors.lock(connection, row.action_uid)


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
    decision = decide(revision.plan, row.action_uid, edited_at, now)
    return before, Decided(action, revision.plan, decision)


def revision_edited(
    connection: sa.Connection, row: sa.Row[Any], edited_at: datetime, steps: Steps
) -> Revision:
    """Return the revision that an edit by plain SQL makes; raises as `adopt_edit`."""
    revision = revision_of(*_edited(connection, row, edited_at, steps), "plain SQL")
    changes = dependencies_of([row], [revision])
    # A tick that waited for others' changes could wait for ever.
    check_circles(connection, row.small_app_id, changes, holds=False)
    return revision


def dependencies_of(
    rows: Sequence[sa.Row[Any] | None], revisions: Sequence[Revision]
) -> list[Dependency]:
    """Return what actions will depend on by their next revisions; a new action has no row."""
    return [
        Dependency(None if row is None else row.name, one.columns["name"], one.plan.watched)
        for row, one in zip(rows, revisions, strict=True)
    ]


def settle(
    connection: sa.Connection, row: sa.Row[Any], now: datetime, steps: Steps
) -> tuple[sa.Row[Any], Recorded]:
    """Adopt a pending edit by plain SQL, as a tick would; return the row after that.

    A broken edit quarantines the action until its next change. Raises NotFound if the action was
    deleted.
    """
    if row.deleted_at is not None:
        raise NotFound(f"action {row.name!r} was deleted")
    if row.edited_at is None or row.set_aside is not None or not was_edited(row, steps):
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
    cursors.advance(connection, [{"uid": row.action_uid, "until": until, "next_at": None}])
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
