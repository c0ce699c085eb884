"""Make the revision of an action that somebody edited by plain SQL."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel

from models.action import (
    ParseContext,
    ScheduledActionModel,
    document_hash,
    parse_action,
    plan_of,
    stored_document,
)
from models.action.plan import Plan
from models.action.steps import BUILT_IN_STEPS
from models.errors import InvalidAction, NotFound
from models.json_text import read_json
from models.parsing import LEAST_TICK
from models.step_spec import StepSpec
from models.store import actions
from models.store.actions import cursors
from scheduler.events.decide import decide_until as decide_events_until
from scheduler.occurrence import decide
from scheduler.record import Decided, Recorded, Subject, advance, record
from small_apps.store import small_apps


class AnyParameters(BaseModel):
    """Parameters of a step that only the workers know."""

    model_config = {"extra": "allow"}


@dataclass(frozen=True, slots=True)
class Revision:
    """A validated document, as it is stored; it is parsed once, here."""

    model: ScheduledActionModel
    plan: Plan
    columns: dict[str, Any]


def revision_of(document: object, context: ParseContext, author: str) -> Revision:
    """Return the revision that `document` makes; raises InvalidAction with all problems."""
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
            "document_hash": document_hash(stored),
            "plan": plan.to_json(),
            "event": plan.on_event.event if plan.on_event else None,
            "look_back_s": plan.longest_look_back_s,
            "author": author,
        },
    )


def subject_of(row: sa.Row[Any], *, number: int | None = None) -> Subject:
    """Return whose operations a locked cursor's row decides, under its revision or `number`."""
    return Subject(row.action_uid, row.small_app_id, row.name, number or row.revision)


def decide_until(
    connection: sa.Connection, row: sa.Row[Any], instant: datetime, revision: Revision | None = None
) -> Recorded:
    """Decide and record an action's current revision up to `instant`; the cursor is not moved.

    `revision` is the next one, if there is to be one. A plan that somebody broke by hand decides
    nothing.
    """
    try:
        plan = Plan.from_json(row.plan)
    except ValueError:
        return Recorded()
    since, recorded = decided_since(row, instant), Recorded()
    while True:
        # At most 1,000 of catch-up `all` at a time.
        decision = decide(plan, row.action_uid, since, instant)
        recorded += record(connection, [Decided(subject_of(row), plan, decision)])
        if decision.watermark >= instant:
            break
        since = decision.watermark
    if not plan.active or plan.on_event is None:
        return recorded
    is_last = revision is None or not goes_on(row, revision)
    effective_from = row.effective_from
    return recorded + decide_events_until(
        connection, subject_of(row), plan, effective_from, instant, is_last=is_last
    )


def goes_on(row: sa.Row[Any], revision: Revision) -> bool:
    """Whether an event action goes on with `revision`: still due at the same events.

    Its window then reaches back before the change: what was on its way to us is not lost. A change
    of what it is due at begins anew, as switching on does.
    """
    try:
        plan = Plan.from_json(row.plan)
    except ValueError:
        return False
    is_on_event = plan.active and plan.on_event is not None and row.set_aside is None
    return is_on_event and plan.has_same_occurrences(revision.plan)


def restart(
    connection: sa.Connection, row: sa.Row[Any], revision: Revision, decided: datetime
) -> None:
    """Let `revision` decide from `decided` on, or an event action that goes on from its start."""
    effective_from = row.effective_from if goes_on(row, revision) else decided
    cursors.restart(connection, row.action_uid, decided, effective_from)


def decided_since(row: sa.Row[Any], now: datetime) -> datetime:
    """Return the instant up to which an action is decided.

    The watermark; after a clock that had been behind it may lie before the revision took effect,
    and what lay before that is not this revision's business.
    """
    since: datetime = row.watermark
    return max(since, row.effective_from) if row.effective_from <= now else since


def adopt_edit(
    connection: sa.Connection, row: sa.Row[Any], now: datetime
) -> tuple[Recorded, Decided]:
    """Decide the old document up to the edit, make the revision, decide it from there to `now`.

    Raises InvalidAction or ValueError for a document that somebody broke.
    """
    # Not before the watermark either: a daemon that was frozen has an old `now`.
    edited_at = max(min(row.edited_at or now, now), row.watermark)
    revision = revision_of(*_edited(connection, row, edited_at), "plain SQL")
    before = Recorded() if row.set_aside else decide_until(connection, row, edited_at, revision)
    number = row.revision + 1
    actions.replace(connection, row.action_uid, number, dict(revision.columns), edited_at)
    restart(connection, row, revision, edited_at)
    action = Subject(row.action_uid, row.small_app_id, revision.columns["name"], number)
    decision = decide(revision.plan, row.action_uid, edited_at, now)
    return before, Decided(action, revision.plan, decision)


def settle(
    connection: sa.Connection, row: sa.Row[Any], now: datetime
) -> tuple[sa.Row[Any], Recorded]:
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
        until = min(row.edited_at, now)
        recorded = decide_until(connection, row, until)
        actions.set_aside(connection, row.action_uid, str(error), until)
    return cursors.lock(connection, row.action_uid), recorded


def was_edited(row: sa.Row[Any]) -> bool:
    """Whether the stored document or the column `active` is not what the revision was made of."""
    if row.set_aside:
        return True
    try:
        document = read_json(row.document)
        plan = Plan.from_json(row.plan)
    except ValueError:
        return True
    return (
        not isinstance(document, dict)
        or document_hash(document) != row.document_hash
        or bool(row.active) != plan.active
    )


def _edited(
    connection: sa.Connection, row: sa.Row[Any], edited_at: datetime
) -> tuple[object, ParseContext]:
    document = read_json(row.document)
    if isinstance(document, dict) and bool(row.active) != _old_plan_active(row):
        document = {**document, "active": bool(row.active)}
    app = small_apps.by_id(connection, row.small_app_id)
    context = ParseContext(
        default_zone=app.zone,
        now=edited_at,
        created_at=row.created_at,
        previous=actions.revision_document(connection, row.action_uid, row.revision),
        steps=_open_steps(document),
        tick=LEAST_TICK,
        # Whoever sends it knows what is allowed.
        celery=None,
    )
    return document, context


def _old_plan_active(row: sa.Row[Any]) -> bool:
    try:
        return Plan.from_json(row.plan).active
    except ValueError:
        return bool(row.active)


def _open_steps(document: object) -> Mapping[str, StepSpec]:
    """Take steps that the daemon does not know as heavy ones: their workers know them."""
    operations = document.get("operations") if isinstance(document, dict) else None
    names = operations if isinstance(operations, dict) else {}
    return {
        name: StepSpec(
            name=name, parameters=AnyParameters, is_heavy=True, needs_recipients=False, order=1000
        )
        for name in names
        if name not in BUILT_IN_STEPS
    }
