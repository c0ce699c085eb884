"""The rule of an action: by the clock, by the calendar, by the sun, or by an event."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from minutebook.steps import Steps
from models.action.event_rules import AfterEventModel, EventRule, OnEventModel
from models.action.intervals import END, FromEndModel, IntervalModel
from models.action.recurrence import RecurrenceModel
from models.action.rule import RuleModel
from models.action.rules import CronModel, DueDateModel, SolarModel
from models.document import as_object, as_written
from models.hints import listed, nearest, segment
from models.parsing import Models, keys_of, reading_of
from models.problems import raise_all, read_each

MOST_RULES = 100
KINDS: Mapping[str, type[RuleModel]] = {
    "cron_rule": CronModel,
    "rrule": RecurrenceModel,
    "due_date": DueDateModel,
    "every": IntervalModel,
    "solar": SolarModel,
    "on": OnEventModel,
    "after": AfterEventModel,
}
ALONE = ("every", "on", "after")
EXAMPLE = '{"cron_rule": "0 7 * * 1"}'


class WhenModel(BaseModel):
    """The rule of an action: one object, or a list, the union of its rules."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    rules: tuple[RuleModel, ...]
    is_list: bool = False

    @property
    def is_event(self) -> bool:
        """Whether the action is due on or after an event."""
        return any(isinstance(rule, EventRule) for rule in self.rules)

    @property
    def is_about_users(self) -> bool:
        """Whether the action is due on or after an event of users."""
        return any(isinstance(rule, EventRule) and not rule.ends for rule in self.rules)

    @property
    def watched(self) -> str | None:
        """The name of the action whose ends make this one due, or None."""
        return next((one.watched for one in self.rules if isinstance(one, EventRule)), None)

    @property
    def resolved(self) -> tuple[RuleModel, ...]:
        """The rules as a plan keeps them."""
        return tuple(rule.resolved() for rule in self.rules)

    @property
    def every(self) -> timedelta | None:
        """The interval's length; None for other kinds."""
        return next((rule.every for rule in self.rules if isinstance(rule, IntervalModel)), None)

    @property
    def due_dates(self) -> frozenset[datetime]:
        """The due dates in UTC."""
        return frozenset(rule.due_at for rule in self.rules if isinstance(rule, DueDateModel))

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, list | tuple):
            return {"rules": _read_list(value, info), "is_list": True}
        return {"rules": (_read_rule(value, info),), "is_list": False}

    @classmethod
    def held(cls, _steps: Steps) -> Mapping[str, Models]:
        """Return the keys of all kinds, each with the models that its value is read as."""
        kinds: list[type[RuleModel]] = [*KINDS.values(), FromEndModel]
        return {key: models for kind in kinds for key, models in keys_of(kind).items()}

    @model_serializer
    def _written(self) -> Any:
        rules = _as_json(self.rules)
        return rules if self.is_list else rules[0]


def _read_list(values: list[object] | tuple[object, ...], info: ValidationInfo) -> list[RuleModel]:
    if not values:
        raise ValueError("is empty; write at least one rule")
    if len(values) > MOST_RULES:
        raise ValueError(f"has {len(values)} entries; write at most {MOST_RULES}")
    rules, faults = read_each(enumerate(values), lambda _, one: _read_clock_rule(one, info))
    raise_all("when", faults)
    return rules


def _read_clock_rule(value: object, info: ValidationInfo) -> RuleModel:
    if any(key in as_object(value, EXAMPLE) for key in ALONE):
        raise ValueError(
            "a list holds cron rules, rrules, due dates and events of the sun only; "
            "make another action for this"
        )
    return _read_rule(value, info)


def _read_rule(value: object, info: ValidationInfo) -> RuleModel:
    """Return the rule of the kind that its keys show; raises ValueError or ValidationError."""
    raw = as_object(value, EXAMPLE)
    kinds = [key for key in KINDS if key in raw]
    if len(kinds) > 1:
        raise ValueError(f"has two kinds, {listed(kinds)}; keep one, or make another action")
    if not kinds:
        raise ValueError(_no_kind(raw))
    rule = _model_of(kinds[0], raw).model_validate(raw, context=info.context)
    reading = reading_of(info)
    closing = rule.with_calendars(reading.calendars)
    if reading.now is not None and closing.closed and not closing.leaves_some(reading.now):
        raise ValueError(
            "has an `except` that leaves out all that is due; remove an entry of it, or the rule"
        )
    return rule


def _model_of(kind: str, raw: Mapping[str, object]) -> type[RuleModel]:
    return FromEndModel if kind == "every" and raw.get("from") == END else KINDS[kind]


def _resolved_rules(values: Any, info: ValidationInfo) -> tuple[RuleModel, ...]:
    return tuple(
        _model_of(next(key for key in KINDS if key in one), one).model_validate(
            one, context=info.context
        )
        for one in values
    )


def _as_json(rules: Sequence[RuleModel]) -> list[Any]:
    return [as_written(rule) for rule in rules]


# The rules of a plan; they were checked when they were saved.
ResolvedRules = Annotated[
    tuple[RuleModel, ...], PlainValidator(_resolved_rules), PlainSerializer(_as_json)
]


def _no_kind(raw: Mapping[str, object]) -> str:
    for key in raw:
        near = nearest(key, KINDS)
        if near is not None:
            return f'has the unknown key "{segment(key)}"; did you mean "{near}"?'
    return f"has no rule; write one of {listed(KINDS)}"
