"""Decide actions that are alike once: thousands often have the same rule."""

from datetime import datetime
from uuid import UUID

from models.action.plan import Plan
from scheduler.decision import Decision
from scheduler.from_end import Ends, decide_next


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
        if not plan.is_of_each:
            self._made[key] = plan, decision
        return decision
