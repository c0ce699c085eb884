"""Events that make actions due: of users, and the ends of other actions' operations."""

import re
from dataclasses import dataclass
from datetime import datetime

from models.fingerprint import SEPARATOR
from models.hints import listed, meant
from models.operation import OperationState
from models.values import parse_name

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
_EVENT = re.compile("[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")


def event_name(value: object) -> str:
    """Return the event name `value`; raises ValueError with what to write instead."""
    if not isinstance(value, str) or _EVENT.fullmatch(value) is None:
        raise ValueError("write an event's name: letters, digits and . _ : -, at most 200")
    if value.startswith(RESERVED_EVENTS) and value not in EVENTS:
        hint = meant(value, EVENTS, f"; known are {listed(EVENTS)}")
        raise ValueError(f"is not a built-in event{hint}")
    return value


def event_id(value: object) -> str:
    """Return the id `value` of a custom event; raises ValueError with what to write instead."""
    id = parse_name(value)
    if SEPARATOR in id:
        raise ValueError(
            f'contains "{SEPARATOR}", which separates parts of a fingerprint; remove it'
        )
    return id


def end_event(action: str) -> str:
    """Return the event that operations of the action of that name raise when they end."""
    return END_OF + action


def ended_action(event: str) -> str | None:
    """Return the name of the action whose ends are `event`; None for an event of users."""
    return event.removeprefix(END_OF) if event.startswith(END_OF) else None


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
    state: str | None = None
    groups: frozenset[str] = frozenset()

    @property
    def subject(self) -> str | None:
        """The user, None for the end of an operation about none."""
        return self.id or None
