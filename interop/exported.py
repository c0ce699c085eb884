"""What becomes of an action in another scheduler."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from interop.entries import CannotMove
from interop.outcomes import Kind
from models.action.document import ScheduledActionModel, plan_of
from models.action.intervals import IntervalModel
from models.action.plan import Plan
from models.action.rule import RuleModel
from models.celery_task import HandOver

KEEP = "keep it in Minutebook"
Format = Literal["json", "beat", "apscheduler"]


@dataclass(frozen=True, slots=True)
class Exported:
    """What becomes of an action: the other scheduler's entries by name, and what differs."""

    name: str
    kind: Kind
    entries: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    why: str = ""
    instead: str = ""

    @classmethod
    def refused(cls, name: str, error: CannotMove) -> "Exported":
        """Return what becomes of an action that the other scheduler cannot have."""
        return cls(name, "cannot", why=error.why, instead=error.instead)

    @classmethod
    def made(cls, name: str, entries: Mapping[str, str], remarks: tuple[str, ...]) -> "Exported":
        """Return what becomes of an action, which is the same if nothing is remarked."""
        return cls(name, "differs" if remarks else "same", entries, remarks)


def only_rule(plan: Plan) -> RuleModel:
    """Return the only rule of a plan; raises CannotMove for several."""
    if len(plan.rules) > 1:
        raise CannotMove("it has several rules", "make an action of each")
    return plan.rules[0]


def task_of(plan: Plan) -> HandOver:
    """Return the Celery task of a plan; raises CannotMove if it has none."""
    if plan.hand_over is None:
        raise CannotMove(
            "it is not a celery_task: its steps run in Minutebook's workers",
            f"{KEEP}; `minutebook action run NAME` and POST /api/actions/NAME:run can start it",
        )
    return plan.hand_over


def options_of(handed: HandOver, queue: str) -> dict[str, object]:
    """Return Celery's options of a message."""
    expires = None if handed.expires is None else handed.expires.total_seconds()
    options = {
        "priority": handed.priority,
        "headers": handed.headers,
        "expires": expires,
        "ignore_result": handed.ignore_result,
    }
    route: dict[str, object] = {"queue": queue}
    if handed.exchange is not None:
        route = {"exchange": handed.exchange, "routing_key": handed.routing_key}
    return {**route, **{name: one for name, one in options.items() if one not in (None, {})}}


def lost(action: ScheduledActionModel, other: str, *, keeps: Collection[str] = ()) -> Iterator[str]:
    """Yield what the other scheduler does not do, unless it `keeps` that."""
    policy, plan = action.policy, plan_of(action)
    facts = {
        "overlap": (
            plan.policy.overlap != "allow",
            f"{other} sends whether or not the last run has ended (overlap {plan.policy.overlap})",
        ),
        "catch_up": (plan.policy.catch_up == "all", f"{other} does not catch up"),
        "retry": (plan.policy.retry.max_attempts > 1, f"{other} does not retry"),
        "time_limit": (policy.time_limit is not None, f"{other} has no time limits"),
        "bounds": (
            bool(plan.policy.starts_at or plan.policy.ends_at),
            "starts_at and ends_at are left out",
        ),
        "hooks": (
            bool(plan.hooks and plan.hooks.targets),
            "hooks are left out",
        ),
        "jitter": (
            any(one.jitter_words for one in plan.rules),
            "jitter is left out",
        ),
        "tolerance": (
            any(isinstance(one, IntervalModel) and one.tolerance for one in plan.rules),
            "tolerance is left out",
        ),
    }
    yield from (text for name, (is_so, text) in facts.items() if is_so and name not in keeps)
