"""Make revisions of actions, and store them where the one before ends."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from minutebook.steps import Steps
from models.action.document import (
    ParseContext,
    ScheduledActionModel,
    document_hash,
    parse_action,
    plan_of,
    stored_document,
)
from models.action.plan import Plan, UnreadablePlan
from models.job import id_of
from models.store import actions, clock_steps
from models.store.actions import cursors
from models.store.tenants.closing import closing
from models.store.ticks import CLOCK_WAS_WRONG
from models.stored import document_in
from runtime.logs.events import EventLog
from scheduler.forecast import forecast, on_its_way_since
from scheduler.from_end import DecisionCache, beginning, ends_for
from scheduler.record import ActionRef, Decided, Recorded, State, record

logger = EventLog("minutebook.tick")


@dataclass(frozen=True, slots=True)
class Revision:
    """A document as it is stored; `model` is None if nothing of it had to be validated."""

    model: ScheduledActionModel | None
    plan: Plan
    columns: dict[str, Any]


def revision_of(document: object, context: ParseContext, author: str) -> Revision:
    """Return the revision that `document` makes; raises InvalidAction with all problems."""
    if context.is_paused and isinstance(document, dict):
        document = {"active": False, **document}
    model = parse_action(document, context)
    plan = plan_of(model)
    columns = {
        **_columns(stored_document(model), plan, author, context.steps),
        "owner": model.owner,
        "look_back_s": plan.longest_look_back_s,
        "job_id": None if plan.job is None else id_of(plan.job.url),
    }
    return Revision(model, plan, columns)


def restated(row: sa.Row[Any], plan: Plan, author: str, steps: Steps, **keys: Any) -> Revision:
    """Return the revision of a stored document with other values of these keys, and its plan.

    It is not validated: what the author may not write any more can be renamed and switched off.
    """
    document = {**document_in(row.document), **keys}
    return Revision(None, plan, _columns(document, plan, author, steps))


def _columns(document: dict[str, Any], plan: Plan, author: str, steps: Steps) -> dict[str, Any]:
    return {
        "name": document["name"],
        "active": plan.active,
        "document": json.dumps(document, ensure_ascii=False),
        "document_hash": document_hash(document, steps),
        "plan": plan.to_json(),
        "event": plan.on_event.event if plan.on_event else None,
        "author": author,
    }


def action_ref(row: sa.Row[Any]) -> ActionRef:
    """Return the action of a cursor's row, under its revision."""
    return ActionRef(row.action_uid, row.small_app_id, row.name, row.revision)


def state_of(row: sa.Row[Any], plan: Plan) -> State:
    """Return the state of a cursor's row, which `plan` decides."""
    return State(action_ref(row), plan, row.effective_from)


def decide_until(
    connection: sa.Connection, row: sa.Row[Any], now: datetime
) -> tuple[Recorded, list[datetime]]:
    """Decide and record a locked action up to `now`; return also the occurrences that are sent.

    The cursor is not moved. A broken plan decides nothing, and one that is quarantined.
    """
    plan, recorded = row.plan, Recorded()
    due: dict[UUID, datetime] = {}
    if row.quarantined is not None or isinstance(plan, UnreadablePlan):
        return recorded, []
    plan = closing(connection, plan, row.small_app_id)
    state = state_of(row, plan)
    for decision in forecast(connection, state, row.watermark, now):
        recorded += record(connection, [Decided(state.action, plan, decision)])
        due |= {one.id_of(row.action_uid): one.at for one in decision.due}
    return recorded, [due[message.id] for message in recorded.messages]


@dataclass(frozen=True, slots=True)
class Next:
    """The next revision of a locked action, which was decided up to its beginning."""

    row: sa.Row[Any]
    revision: Revision
    # An event action that continues looks further back, for late events.
    effective_from: datetime
    recorded: Recorded
    # The occurrences of the revision before that were sent up to its end.
    sent: Sequence[datetime]


def close_revision(
    connection: sa.Connection, row: sa.Row[Any], revision: Revision, now: datetime
) -> Next:
    """Decide a locked action up to `now`; return its next revision, which is not stored yet."""
    created_at, row = row.created_at, by_right_clock(connection, row, now)
    if row.created_at != created_at:
        document = document_in(revision.columns["document"])
        plan = revision.plan.counting_from(row.created_at, document)
        columns = {**revision.columns, "plan": plan.to_json()}
        revision = replace(revision, plan=plan, columns=columns)
    recorded, sent = decide_until(connection, row, now)
    effective_from = now
    if is_same_trigger(row, revision.plan):
        effective_from = min(now, on_its_way_since(connection, state_of(row, row.plan), now))
    return Next(row, revision, effective_from, recorded, sent)


def open_revisions(connection: sa.Connection, some: Sequence[Next], now: datetime) -> None:
    """Store revisions of actions that were decided up to `now`, where they begin."""
    made = {
        one.row.action_uid: {**one.revision.columns, "number": one.row.revision + 1} for one in some
    }
    actions.replace_all(connection, made, now)
    plans = {one.row.action_uid: one.revision.plan for one in some}
    first = next_of(connection, plans, now)
    starts = [
        {
            "action_uid": uid,
            "watermark": now,
            "effective_from": one.effective_from,
            "next_occurrence_at": first[uid],
        }
        for uid, one in zip(made, some, strict=True)
    ]
    cursors.advance(connection, starts)


def next_of(
    connection: sa.Connection, plans: Mapping[UUID, Plan], decided: datetime
) -> dict[UUID, datetime | None]:
    """Return the next occurrences of actions that are decided up to `decided`, by uid.

    They are a tick's own answer: from then on, no tick looks at the action until it is due.
    """
    decisions = DecisionCache(decided)
    ends = beginning(ends_for(connection, plans.items(), decided), decided)
    return {
        uid: decisions.of(plan, uid, decided, ends).next_occurrence_at
        for uid, plan in plans.items()
    }


def is_same_trigger(row: sa.Row[Any], next_plan: Plan) -> bool:
    """Return whether an event action continues with `next_plan`, being due at the same events.

    Its window then reaches back before the change, so that late events are not lost. Otherwise,
    and when an action is resumed, it begins again.
    """
    plan = row.plan
    if isinstance(plan, UnreadablePlan):
        return False
    is_on_event = plan.active and plan.on_event is not None and row.quarantined is None
    return is_on_event and plan.has_same_occurrences(next_plan)


def by_right_clock(connection: sa.Connection, row: sa.Row[Any], now: datetime) -> sa.Row[Any]:
    """Return a locked cursor that no wrong clock decided; no tick may have noticed that one was."""
    if row.watermark <= now:
        return row
    if row.watermark - now > CLOCK_WAS_WRONG:
        clock_steps.set_right(connection, now)
    else:
        clock_steps.begin_again(connection, row.action_uid, now)
    return cursors.lock(connection, row.action_uid)
