"""Rules of event actions: due at an event, or some time after it.

An event is of a user, or the end of another action's operation.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from models.document import Document
from models.fingerprint import SEPARATOR
from models.operation import OperationState
from models.parsing import Reading
from models.problems import listed, nearest
from models.values import AS_LIST, ActionName, Zone, each_once, one_of, parse_list, parse_name
from models.values.durations import format_delay, format_span, parse_delay

ACTIVATED = "instance.user.activated"
CREATED = "instance.user.created"
LAST_SEEN = "instance.user.last_seen"
EVENTS = (ACTIVATED, CREATED, LAST_SEEN)
RESERVED_EVENTS = "instance."
# An operation's end is an event of this and its action's name. No name of an event has a space.
END_OF = "action "
# The states in which an operation that ran may end, to be named by `ends`.
ENDS = tuple(
    state.value
    for state in (
        OperationState.SUCCESS,
        OperationState.PARTIAL,
        OperationState.FAILED,
        OperationState.HANDED_OVER,
    )
)
NOTHING = timedelta(0)
AT_ONCE = format_span(NOTHING)
_EVENT = re.compile("[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")


def event_name(value: object) -> str:
    """Return the event name `value`; raises ValueError with what to write instead."""
    if not isinstance(value, str) or _EVENT.fullmatch(value) is None:
        raise ValueError("write an event's name: letters, digits and . _ : -, at most 200")
    if value.startswith(RESERVED_EVENTS) and value not in EVENTS:
        near = nearest(value, EVENTS)
        hint = f'did you mean "{near}"?' if near else f"known are {listed(EVENTS)}"
        raise ValueError(f"is not a built-in event; {hint}")
    return value


def event_id(value: object) -> str:
    """Return the id `value` of a custom event; raises ValueError with what to write instead."""
    id = parse_name(value)
    if SEPARATOR in id:
        raise ValueError(
            f'contains "{SEPARATOR}", which separates parts of a fingerprint; remove it'
        )
    return id


def _delay(value: object) -> str:
    return format_delay(*parse_delay(value))


def _ends(value: object) -> tuple[object, ...]:
    check = one_of(*ENDS)
    if value == []:
        raise ValueError(f"is empty; write one of {listed(ENDS)}")
    return tuple(check(one) for one in (parse_list(value) if isinstance(value, list) else [value]))


def end_event(action: str) -> str:
    """Return the event that operations of the action of that name raise when they end."""
    return END_OF + action


def ended_action(event: str) -> str | None:
    """Return the name of the action whose ends are `event`; None for an event of users."""
    return event.removeprefix(END_OF) if event.startswith(END_OF) else None


EventName = Annotated[str, BeforeValidator(event_name)]
DelaySpan = Annotated[str, BeforeValidator(_delay)]
Ends = Annotated[tuple[str, ...], BeforeValidator(_ends), AfterValidator(each_once), AS_LIST]


class ActionEndModel(Document):
    """The end of an operation of another action of the same small app, in one of these states."""

    example = '{"action": "refresh", "ends": "success"}'

    action: ActionName
    ends: Ends = (OperationState.SUCCESS.value,)


class EventRule(Document):
    """A rule that an event makes due, not the clock."""

    @property
    def event(self) -> str:
        """The event's name."""
        raise NotImplementedError

    @property
    def ends(self) -> tuple[str, ...]:
        """The states in which another action's operation ends; empty for an event of users."""
        return ()


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


class OnEventModel(EventRule):
    """Due at each such event, once per subject."""

    on: EventName

    @property
    def event(self) -> str:
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
    def event(self) -> str:
        """The event's name."""
        return self.after


class OnEndModel(EventRule):
    """Due when an operation of another action ends."""

    on: ActionEndModel

    @property
    def event(self) -> str:
        """The event's name."""
        return end_event(self.on.action)

    @property
    def ends(self) -> tuple[str, ...]:
        """The states in which that operation ends."""
        return self.on.ends


class AfterEndModel(_Delayed):
    """Due when an operation of another action ends, or `delay` after that."""

    after: ActionEndModel
    delay: DelaySpan = AT_ONCE
    timezone: Zone | None = None

    @property
    def event(self) -> str:
        """The event's name."""
        return end_event(self.after.action)

    @property
    def ends(self) -> tuple[str, ...]:
        """The states in which that operation ends."""
        return self.after.ends


DelayedRule = AfterEventModel | AfterEndModel


def has_calendar_part(rule: EventRule) -> bool:
    """Return whether a rule's delay has years or months, which need a zone."""
    if not isinstance(rule, DelayedRule) or rule.delay == AT_ONCE:
        return False
    return bool(parse_delay(rule.delay)[0])


@dataclass(frozen=True, slots=True)
class Happened:
    """A user's event in the range `number`; `groups` is empty unless `with_groups` adds them.

    The end of an operation has the `state` in which it ended, and no user (`id` empty) if the
    operation is about none.
    """

    number: int
    at: datetime
    event_id: str | None
    id: str
    active: bool
    activated_at: datetime | None
    # When `active` or the user's groups last changed, None for never.
    flags_changed_at: datetime | None = None
    state: str | None = None
    groups: frozenset[str] = frozenset()

    @property
    def subject(self) -> str | None:
        """The user, None for the end of an operation about none."""
        return self.id or None
