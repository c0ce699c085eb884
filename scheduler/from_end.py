"""Decide intervals that count from the end of the last operation; docs/dev/adr/0034."""

from collections.abc import Iterable, Mapping
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
    connection: sa.Connection, plans: Iterable[tuple[UUID, object]], now: datetime
) -> dict[UUID, LastEnd]:
    """Return the last ends of those of these actions that count from them."""
    counting = [uid for uid, plan in plans if isinstance(plan, Plan) and plan.from_end is not None]
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
    known = ends.get(uid) or LastEnd(watermark, watermark)
    if known.is_unfinished:
        nothing = Decision(max(watermark, now))
        return replace(nothing, next_occurrence_at=plan.look_again(now), ended_at=now)
    plan, ended_at = known.count(plan, uid)
    found = decide(plan, uid, watermark, now)
    following = found.next_occurrence_at or plan.look_again(now)
    return replace(found, next_occurrence_at=following, ended_at=ended_at)


def beginning(ends: Ends, at: datetime) -> Ends:
    """Return the last ends that count for rules that come into force at an instant."""
    return {uid: replace(one, effective_from=at, watermark=at) for uid, one in ends.items()}


def counted(connection: sa.Connection, action: tuple[Plan, UUID], now: datetime) -> Plan:
    """Return the plan of an action with the occurrence that it counts from ends, if it does.

    While an operation is unfinished, there is none.
    """
    plan, uid = action
    if plan.from_end is None:
        return plan
    return last_ends(connection, [uid], now).get(uid, LastEnd(now, now)).count(plan, uid)[0]


class DecisionCache:
    """The decisions of one tick, kept for actions with the same plan and watermark."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        # By the identity of a plan, which stays as long as the plan is kept here: its hash is slow.
        self._made: dict[tuple[int, datetime], tuple[Plan, Decision]] = {}

    def of(self, plan: Plan, uid: UUID, watermark: datetime, ends: Ends) -> Decision:
        """Return the decision about an action, as `decide_next` does."""
        key = (id(plan), watermark)
        made = self._made.get(key)
        if made is not None:
            return made[1]
        decision = decide_next((plan, uid), watermark, self._now, ends)
        if not plan.depends_on_action:
            self._made[key] = plan, decision
        return decision
