"""Rules of event actions: due at an event, or some time after it.

An event is of a user, or the end of another action's operation.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator

from models.action.rule import RuleModel
from models.action.schedule import Once, Schedule
from models.document import Document
from models.events import AT_ONCE, ENDS, EVENTS, end_event, event_name
from models.operation import OperationState
from models.parsing import Reading
from models.problems import listed
from models.values import AS_LIST, ActionName, Zone, each_once, one_of, parse_list
from models.values.delays import Delay, delay_of
from models.values.durations import format_delay, parse_delay, span_in_words


def _delay(value: object) -> str:
    return format_delay(*parse_delay(value))


def _ends(value: object) -> tuple[object, ...]:
    check = one_of(*ENDS)
    if value == []:
        raise ValueError(f"is empty; write one of {listed(ENDS)}")
    return tuple(check(one) for one in (parse_list(value) if isinstance(value, list) else [value]))


EventName = Annotated[str, BeforeValidator(event_name)]
DelaySpan = Annotated[str, BeforeValidator(_delay)]
Ends = Annotated[tuple[str, ...], BeforeValidator(_ends), AfterValidator(each_once), AS_LIST]


class ActionEndModel(Document):
    """The end of an operation of another action of the same small app, in one of these states."""

    example = '{"action": "refresh", "ends": "success"}'

    action: ActionName
    ends: Ends = (OperationState.SUCCESS.value,)


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
    def lag(self) -> Delay:
        """How long after the event it is due."""
        return delay_of(AT_ONCE, None)

    def every_occurrence(self, uid: UUID) -> Schedule:  # noqa: ARG002 - the same for all actions
        """Return no occurrence: the clock makes nothing due."""
        return Once(None)

    def words(self, zone: str) -> str:  # noqa: ARG002 - it has its own
        """Return the event and its delay: `7 days 30 seconds after instance.user.last_seen`."""
        delay, event = self.lag, self.event
        if self.watched is not None:
            event = f'"{self.watched}" ends as {" or ".join(self.ends)}'
        if not delay.months and not delay.exact:
            return f"on {event}" if self.watched is None else f"when {event}"
        counts = {"year": delay.months // 12, "month": delay.months % 12}
        parts = [f"{n} {unit}{'s' if n > 1 else ''}" for unit, n in counts.items() if n]
        parts += [span_in_words(delay.exact)] if delay.exact else []
        shown_in = f", {self.zone}" if delay.months else ""
        return f"{' '.join(parts)} after {event}{shown_in}"

    def warnings(self, zone: str) -> Iterator[str]:  # noqa: ARG002 - events have none
        """Yield a warning about a custom event that is named like a built-in one."""
        meant = next((one for one in EVENTS if one.endswith(f".{self.event}")), None)
        if meant is not None:
            yield f'when "{self.event}": is an event of your own; did you mean "{meant}"?'


class _Delayed(EventRule):
    """An event rule with a delay, and a zone if the delay has years or months."""

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the small app's zone if the delay has years or months."""
        try:
            calendar, _ = parse_delay(raw.get("delay"))
        except ValueError:
            return raw
        return {"timezone": reading.default_zone, **raw} if calendar else raw

    @property
    def zone(self) -> str | None:
        """The zone of the delay's years and months; None without any."""
        return self.lag.zone if self.lag.months else None

    def resolved(self) -> Self:
        """Return the rule without a zone beside an exact delay, which has no effect."""
        if self.zone is not None or "timezone" not in self.model_fields_set:
            return self
        return self.model_validate(
            self.model_dump(mode="json", exclude_unset=True, exclude={"timezone"})
        )


class OnEventModel(EventRule):
    """Due at each such event, once per subject."""

    on: EventName

    @property
    def source(self) -> str:
        """The event's name."""
        return self.on


class AfterEventModel(_Delayed):
    """Due `delay` after each such event, once per subject.

    Weeks, days and smaller units are exact. Years and months are added first, on the wall clock of
    `timezone` (default: the small app's, stored only if the delay has years or months).
    """

    after: EventName
    delay: DelaySpan
    timezone: Zone | None = None

    @property
    def source(self) -> str:
        """The event's name."""
        return self.after

    @property
    def lag(self) -> Delay:
        """How long after the event it is due."""
        return delay_of(self.delay, self.timezone)


class OnEndModel(EventRule):
    """Due when an operation of another action ends."""

    on: ActionEndModel

    @property
    def source(self) -> ActionEndModel:
        """The end of that operation."""
        return self.on


class AfterEndModel(_Delayed):
    """Due when an operation of another action ends, or `delay` after that."""

    after: ActionEndModel
    delay: DelaySpan = AT_ONCE
    timezone: Zone | None = None

    @property
    def source(self) -> ActionEndModel:
        """The end of that operation."""
        return self.after

    @property
    def lag(self) -> Delay:
        """How long after the event it is due."""
        return delay_of(self.delay, self.timezone)
