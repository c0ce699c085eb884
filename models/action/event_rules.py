"""Rules of event actions: due at an event, or some time after it.

An event is of a user, or the end of another action's operation.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, ValidationInfo
from pydantic_core import InitErrorDetails

from models.action.policy import AS_ISO
from models.action.rule import NOTHING, RuleModel
from models.action.schedule import Once, Schedule
from models.document import Document
from models.events import ENDS, EVENTS, end_event, event_name
from models.hints import listed
from models.operation import OperationState
from models.parsing import Reading
from models.problems import EXAMPLES, line_error
from models.values import AS_LIST, ActionName, each_once, one_of, parse_list
from models.values.durations import parse_delay, span_in_words


def _ends(value: object) -> tuple[object, ...]:
    check = one_of(*ENDS)
    if value == []:
        raise ValueError(f"is empty; write one of {listed(ENDS)}")
    return tuple(check(one) for one in (parse_list(value) if isinstance(value, list) else [value]))


Delay = Annotated[timedelta, BeforeValidator(parse_delay), AS_ISO]
Ends = Annotated[tuple[str, ...], BeforeValidator(_ends), AfterValidator(each_once), AS_LIST]


class ActionEndModel(Document):
    """The end of an operation of another action of the same small app, in one of these states."""

    action: ActionName
    ends: Ends = (OperationState.SUCCESS.value,)


def _source(value: object, info: ValidationInfo) -> object:
    if isinstance(value, Mapping):
        return ActionEndModel.model_validate(value, context=info.context)
    return event_name(value)


Source = Annotated[str | ActionEndModel, BeforeValidator(_source)]


class EventRule(RuleModel):
    """A rule that an event makes due, not the clock."""

    is_on_event: ClassVar[bool] = True

    @property
    def source(self) -> str | ActionEndModel:
        """What it waits for: an event of users, by its name, or the end of another action."""
        raise NotImplementedError

    @property
    def event(self) -> str:
        """The event's name."""
        source = self.source
        return source if isinstance(source, str) else end_event(source.action)

    @property
    def ends(self) -> tuple[str, ...]:
        """The states in which another action's operation ends; empty for an event of users."""
        return () if isinstance(self.source, str) else self.source.ends

    @property
    def watched(self) -> str | None:
        """The name of the action whose operations end; None for an event of users."""
        return None if isinstance(self.source, str) else self.source.action

    @property
    def lag(self) -> timedelta:
        """How long after the event it is due."""
        return NOTHING

    def every_occurrence(self, uid: UUID) -> Schedule:  # noqa: ARG002 - the same for all actions
        """Return no occurrence: the clock makes nothing due."""
        return Once(None)

    def words(self, zone: str) -> str:  # noqa: ARG002 - it has its own
        """Return the event and its delay: `7 days 30 seconds after instance.user.last_seen`."""
        event = self.event
        if self.watched is not None:
            event = f'"{self.watched}" ends as {" or ".join(self.ends)}'
        if not self.lag:
            return f"on {event}" if self.watched is None else f"when {event}"
        return f"{span_in_words(self.lag)} after {event}"

    def warnings(self, zone: str) -> Iterator[str]:  # noqa: ARG002 - events have none
        """Yield a warning about a custom event that is named like a built-in one."""
        meant = next((one for one in EVENTS if one.endswith(f".{self.event}")), None)
        if meant is not None:
            yield f'when "{self.event}": is an event of your own; did you mean "{meant}"?'


class OnEventModel(EventRule):
    """Due at each such event, once per subject; or when an operation of another action ends."""

    on: Source

    @property
    def source(self) -> str | ActionEndModel:
        """What it waits for."""
        return self.on


class AfterEventModel(EventRule):
    """Due `delay` after each such event, or end of another action; only the latter may lack one."""

    after: Source
    delay: Delay = NOTHING

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of an event of users without a delay."""
        if "delay" in raw or isinstance(raw.get("after"), Mapping):
            return []
        return [line_error(("delay",), None, f"is required; add {EXAMPLES['delay']}")]

    @property
    def source(self) -> str | ActionEndModel:
        """What it waits for."""
        return self.after

    @property
    def lag(self) -> timedelta:
        """How long after the event it is due."""
        return self.delay
