"""Decide intervals that count from the end of the last operation; docs/adr/0034."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.store.actions.last_ends import LastEnd, last_ends
from scheduler.decision import Decision, decide

# The last ends that a batch of actions counts from, by action.
Ends = Mapping[UUID, LastEnd]


def ends_for(
    connection: sa.Connection, plans: Mapping[UUID, object], now: datetime
) -> dict[UUID, LastEnd]:
    """Return the last ends of those of these actions that count from them."""
    counting = [
        uid for uid, plan in plans.items() if isinstance(plan, Plan) and plan.from_end is not None
    ]
    return last_ends(connection, counting, now) if counting else {}


def decide_next(
    action: tuple[Plan, UUID], watermark: datetime, now: datetime, ends: Ends
) -> Decision:
    """Return the decision of a tick about an action, as `decide` does.

    While an operation of an interval from the end is unfinished, nothing is due. What is due or
    missed is such an operation, so the cursor comes back before the next one may be due.
    """
    plan, uid = action
    if plan.from_end is None:
        return decide(plan, uid, watermark, now)
    known = ends.get(uid)
    ended_at = None if known is None else known.ended_at
    if known is not None and known.is_unfinished:
        nothing = Decision(max(watermark, now))
        return replace(nothing, next_occurrence_at=plan.look_again(now), ended_at=now)
    found = decide(plan.counted(watermark, ended_at), uid, watermark, now)
    following = found.next_occurrence_at or plan.look_again(now)
    return replace(found, next_occurrence_at=following, ended_at=ended_at)


def counted(
    connection: sa.Connection,
    action: tuple[Plan, UUID],
    now: datetime,
    since: datetime | None = None,
) -> Plan:
    """Return the plan of an action with the occurrence that it counts from ends, if it does.

    That is after `since`, by default the instant up to which its occurrences are decided. It has
    none while an operation is unfinished.
    """
    plan, uid = action
    if plan.from_end is None:
        return plan
    known = last_ends(connection, [uid], now).get(uid)
    if known is None:
        return plan.counted(now if since is None else since, None)
    if known.is_unfinished:
        return plan
    return plan.counted(known.watermark if since is None else since, known.ended_at)
