"""What the daemon needs of an action: resolved at save, stored beside the document.

The tick reads only plans, never documents: an unknown step, template or recipient cannot stop it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Annotated, Any, cast
from uuid import UUID

from pydantic import TypeAdapter

from models.action.event_rules import EventRule
from models.action.exceptions import Closed
from models.action.hooks import HooksModel
from models.action.intervals import LOOKED_AT, FromEndModel, IntervalModel, RepeatingModel
from models.action.policy import TIME_LIMIT, PolicyModel
from models.action.recipients import RecipientFilterModel, RecipientUser
from models.action.rule import Begun, RuleModel
from models.action.schedule import ONE_SECOND, Schedule, bounded, union
from models.action.when import ResolvedRules
from models.celery_task import HandOver
from models.document import AS_WRITTEN
from models.events import Happened
from models.job import Job
from models.parsing import Calendars, Reading

# The subjects of an event action without `recipients`.
EVERYBODY_ACTIVE = RecipientFilterModel()
NO_POLICY = PolicyModel()


@dataclass(frozen=True)
class Plan:
    """An action in the form for tick and claim; spans are positive, instants UTC.

    Its documents are those of the action: what they leave out is as it was left out. The dates of
    calendars are not in it: `with_calendars` reads them when it is decided. `queue` and
    `time_limit` follow from the whole action, `subjects` are those of an event action.
    """

    active: bool
    rules: ResolvedRules
    is_heavy: bool
    queue: str
    policy: Annotated[PolicyModel, AS_WRITTEN] = NO_POLICY
    time_limit: timedelta = TIME_LIMIT
    subjects: Annotated[RecipientFilterModel | None, AS_WRITTEN] = None
    hooks: Annotated[HooksModel | None, AS_WRITTEN] = None
    # A task of the user's Celery application, sent in place of one of ours.
    hand_over: HandOver | None = None
    # Work for a worker that asks over HTTP, in place of a message.
    job: Job | None = None

    def with_policy(self, **changes: object) -> "Plan":
        """Return the plan with other values of its policy."""
        return replace(self, policy=self.policy.model_copy(update=changes))

    # Each tick asks these three of each action, and many actions share a plan.
    @cached_property
    def on_event(self) -> EventRule | None:
        """The only rule of an event action; None for actions due by the clock."""
        return next((cast("EventRule", one) for one in self.rules if one.is_on_event), None)

    @property
    def watched(self) -> str | None:
        """The name of the action whose ends make this one due, or None."""
        rule = self.on_event
        return None if rule is None else rule.watched

    def counts(self, user: RecipientUser) -> bool:
        """Return whether a user may be the subject of this event action."""
        return (self.subjects or EVERYBODY_ACTIVE).counts(user)

    @property
    def selects_by_groups(self) -> bool:
        """Whether the groups of a user decide about the subjects of this event action."""
        return bool(self.subjects and self.subjects.groups)

    def selects(self, event: Happened) -> bool:
        """Return whether an event of the rule's name makes the action due.

        An operation has to end in a state that the rule names; the filter selects the users.
        """
        rule = self.on_event
        ends = () if rule is None else rule.ends
        if ends and event.state not in ends:
            return False
        return not event.id or self.counts(event)

    @property
    def depends_on_action(self) -> bool:
        """Whether its instants depend on the action: its uid, or the ends of its operations."""
        return self.has_jitter or self.from_end is not None

    @property
    def has_jitter(self) -> bool:
        """Whether the uid of its action moves its occurrences."""
        return any(one.depends_on_action for one in self.rules)

    def schedules(self, uid: UUID) -> list[Schedule]:
        """Return the schedules of the rules for the action `uid`, within the bounds."""
        return [
            bounded(one.schedule(uid), self.policy.starts_at, self.policy.ends_at)
            for one in self.rules
        ]

    def schedule(self, uid: UUID) -> Schedule:
        """Return the schedule of all rules for the action `uid`, active or not."""
        return union(self.schedules(uid))

    def look_back_of(self, rule: RuleModel) -> timedelta:
        """Return how far back an occurrence of a rule may be decided."""
        return rule.look_back if self.policy.look_back is None else self.policy.look_back

    @property
    def closed(self) -> tuple[Closed, ...]:
        """What the exceptions of its rules leave out."""
        return tuple(one.closed for one in self.rules if one.closed is not None)

    @cached_property
    def calendars(self) -> frozenset[str]:
        """The calendars of the small app that its rules leave out, by name."""
        return frozenset(name for one in self.closed for name in one.calendars)

    def with_calendars(self, calendars: Calendars) -> "Plan":
        """Return the plan that leaves out the dates of its calendars as they are now.

        One that is gone leaves out none: without any, the plan is as it is stored.
        """
        if not self.calendars:
            return self
        return replace(self, rules=tuple(one.with_calendars(calendars) for one in self.rules))

    def without_exceptions(self) -> "Plan":
        """Return the plan with what its exceptions leave out."""
        if not self.closed:
            return self
        rules = (one.model_copy(update={"except_": None}) for one in self.rules)
        return replace(self, rules=tuple(rules))

    def without_jitter(self) -> "Plan":
        """Return the plan whose occurrences are the instants that its rules name."""
        return replace(self, rules=tuple(one.without_jitter() for one in self.rules))

    @property
    def longest_look_back_s(self) -> int:
        """How far back, in seconds, an occurrence of any rule may be decided."""
        spans = (self.look_back_of(one).total_seconds() for one in self.rules)
        return int(max(spans, default=0))

    @property
    def every(self) -> timedelta | None:
        """The interval of an action that is due at one; None for other kinds."""
        return None if self.repeating is None else self.repeating.every

    @property
    def repeating(self) -> RepeatingModel | None:
        """The interval rule of an action that is due at one; None for other kinds."""
        return next((one for one in self.rules if isinstance(one, RepeatingModel)), None)

    @cached_property
    def from_end(self) -> FromEndModel | None:
        """The only rule of an action that counts from the ends of its operations, or None."""
        return next((cast("FromEndModel", one) for one in self.rules if one.is_from_end), None)

    def from_last_end(self, begins: datetime, ended_at: datetime | None) -> "Plan":
        """Return a plan that counts from ends with its occurrence after the last of them.

        `begins` is when it came into force.
        """
        rule, starts_at = self.from_end, self.policy.starts_at
        if rule is None:
            return self
        if starts_at is not None:
            begins = max(begins, starts_at - ONE_SECOND)
        return replace(self, rules=(rule.from_last_end(begins, ended_at),))

    def counting_from(self, created_at: datetime, document: Mapping[str, Any]) -> "Plan":
        """Return the plan of an action created at `created_at`, with this document.

        A rule whose document names no `starting_at` counts from the creation.
        """
        when = document.get("when")
        if not isinstance(when, dict) or "starting_at" in when:
            return self
        at = created_at.replace(microsecond=0)
        rules = (one.begun(at) if isinstance(one, Begun) else one for one in self.rules)
        return replace(self, rules=tuple(rules))

    def look_again(self, now: datetime) -> datetime | None:
        """Return when to look again while an operation is unfinished: never after the next is due.

        It ends after `now`, so the next is due more than `every` later.
        """
        rule, ends_at = self.from_end, self.policy.ends_at
        if rule is None or not self.active or (ends_at is not None and now >= ends_at):
            return None
        return now + min(rule.every, LOOKED_AT)

    def drops(self, last_start: datetime, now: datetime) -> bool:
        """Return whether an operation that starts at `now` is too early after `last_start`.

        Only intervals with a tolerance drop, within `every` − `tolerance`; catch-up `all` never
        does.
        """
        if self.policy.catch_up == "all":
            return False
        return any(
            isinstance(rule, IntervalModel)
            and rule.tolerance is not None
            and now < last_start + rule.every - rule.tolerance
            for rule in self.rules
        )

    def to_json(self) -> str:
        """Return the plan as JSON text: spans in ISO 8601, instants in UTC."""
        return _PLAN.dump_json(self).decode()

    @staticmethod
    def from_json(text: str) -> "Plan":
        """Return the plan in the JSON of `to_json`; raises ValueError for anything else.

        This includes a plan that this release cannot decide by, such as one with a dropped zone.
        """
        return _PLAN.validate_json(text, context=_AS_STORED)

    def has_same_occurrences(self, other: "Plan") -> bool:
        """Return whether both are due at the same instants, for the same users.

        The look-back does not count.
        """

        def decisive(plan: Plan) -> tuple[object, ...]:
            bounds = plan.policy.starts_at, plan.policy.ends_at
            return plan.active, plan.rules, plan.subjects or EVERYBODY_ACTIVE, bounds

        return decisive(self) == decisive(other)


@dataclass(frozen=True, slots=True)
class UnreadablePlan:
    """A stored plan that cannot be read, and why."""

    reason: str

    @property
    def text(self) -> str:
        """The reason as a sentence."""
        return f"the stored plan cannot be read: {self.reason}"


class UnreadablePlanError(ValueError):
    """The stored plan of an action or an operation cannot be read."""


# In place of a missing or broken plan: nothing is due by it.
NOTHING_PLANNED = Plan(active=False, rules=(), is_heavy=False, queue="quick")


@lru_cache(maxsize=10_000)
def read_plan(text: str) -> Plan | UnreadablePlan:
    """Return the plan of a stored text, or why it is broken; never raises."""
    try:
        return Plan.from_json(text)
    except Exception as error:  # whatever the column holds
        return UnreadablePlan(" ".join(str(error).split())[:500])


def readable(plan: Plan | UnreadablePlan) -> Plan:
    """Return a readable plan; raises UnreadablePlanError for a broken one."""
    if isinstance(plan, UnreadablePlan):
        raise UnreadablePlanError(f"{plan.text}; apply its document again")
    return plan


def hooks_of(plan: Plan | UnreadablePlan | None) -> HooksModel | None:
    """Return the hooks of a stored plan; None if it has none or is broken."""
    return plan.hooks if isinstance(plan, Plan) else None


_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
_AS_STORED = Reading(tolerant=True)
