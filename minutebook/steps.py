"""The interface of steps: `StepContext`, `StepResult`, and the decorator that registers a step."""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from inspect import iscoroutinefunction, signature
from types import MappingProxyType
from typing import Any, Optional, TypeVar
from uuid import UUID

from pydantic import BaseModel


def _no_settings() -> Mapping[str, Any]:
    return MappingProxyType({})


class StepOutcome(str, Enum):
    """How a step ended without an exception."""

    SUCCESS = "success"
    # Some domains or recipients failed; the next steps still run, except that `publish` is left
    # out after a partial `refresh`.
    PARTIAL = "partial"

    __str__ = str.__str__


@dataclass(frozen=True)
class StepResult:
    """What a step reports: an outcome, one readable sentence, and figures as JSON."""

    message: str = ""
    outcome: StepOutcome = StepOutcome.SUCCESS
    details: dict[str, Any] = field(default_factory=dict)


class StepFailed(Exception):
    """Raise it to fail a step with a readable message; `permanent`: a retry cannot help.

    `details` are the step's figures, as in a StepResult.
    """

    def __init__(
        self, message: str, *, permanent: bool = False, details: dict[str, Any] | None = None
    ) -> None:
        self.permanent = permanent
        self.details = details or {}
        super().__init__(message)


@dataclass(frozen=True)
class SmallApp:
    """The tenant an action belongs to; `zone` is an IANA name.

    `settings` are the values that its document gives to steps, read-only.
    """

    id: int
    name: str
    zone: str
    settings: Mapping[str, Any] = field(default_factory=_no_settings, compare=False, repr=False)


@dataclass(frozen=True)
class Recipient:
    """A user that the action's filter selected; `address` is None without an e-mail address."""

    id: str
    address: str | None
    name: str | None


@dataclass
class StepContext(ABC):
    """A step's view of its operation. Instants are aware UTC.

    `last_success_at` is the start of the first attempt of the last successful operation, so that
    nothing published during a run is skipped by the next. `checkpoint` is kept between operations.
    """

    operation_id: UUID
    occurrence_at: datetime
    attempt: int
    subject: str | None
    triggerer: str
    parameters: BaseModel
    small_app: SmallApp
    recipients: Sequence[Recipient]
    run_number: int
    last_success_at: datetime | None
    checkpoint: dict[str, Any]
    logger: logging.Logger | logging.LoggerAdapter[logging.Logger]

    @property
    def last_success_iso(self) -> str | None:
        """Return `last_success_at` as ISO 8601 text in UTC, None before the first success."""
        if self.last_success_at is None:
            return None
        return self.last_success_at.isoformat().replace("+00:00", "Z")

    @abstractmethod
    def progress(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        """Report how far the step is; None is what did not change. Cheap to call often.

        Another message, phase or `blocking` shows within 0.3 seconds, counts within a second.
        `blocking` asks pages to cover the small app's data until it is False, or the step ends.
        """

    @abstractmethod
    def time_left(self) -> timedelta:
        """Return how long the operation may still run; never negative."""

    @abstractmethod
    def should_stop(self) -> bool:
        """Return True when the step should end soon: time limit, cancel, or a stopping worker."""


class NoParameters(BaseModel):
    """The parameters of a step that has none."""

    model_config = {"extra": "forbid"}


StepFunction = Callable[[Any], Optional[StepResult]]
Function = TypeVar("Function", bound=StepFunction)
# Steps of users run after Minutebook's own, in the order of the document.
USER_ORDER = 1_000


@dataclass(frozen=True)
class StepSpec:
    """A step that actions may name, and how to run it; see `step`.

    `function` is None for a step that only workers know. The rest is for Minutebook's own steps,
    and may change: they run by `order`; `if_true` holds the parameters that a bare `true` stands
    for; `alone` allows no other step beside it; `hand_over` returns, from the parameters, the task
    to send in place of ours and its queue; `job` returns the job that a worker takes over HTTP in
    place of a message; `program` returns, from the parameters, the program that the settings have
    to allow; `builds_on` names the step after which, if it ended partial, this one is left out
    unless its parameter `after_partial` is true; `extra` names the optional part of an installation
    that it needs, such as `data`; `example` holds parameters to start from.
    """

    name: str
    parameters: type[BaseModel]
    function: StepFunction | None = None
    heavy: bool = False
    repeatable: bool = True
    sends: bool = False
    # Private from here on.
    order: int = USER_ORDER
    if_true: Mapping[str, object] = field(default_factory=dict)
    alone: bool = False
    hand_over: Callable[[Mapping[str, Any]], Any] | None = None
    job: Callable[[Mapping[str, Any]], Any] | None = None
    program: Callable[[Mapping[str, Any]], str] | None = None
    builds_on: str | None = None
    extra: str = ""
    example: Any = field(default_factory=dict)

    @property
    def is_built_in(self) -> bool:
        """Whether the step is one of Minutebook's own."""
        return self.order < USER_ORDER


# The known steps by name.
Steps = Mapping[str, StepSpec]

_NAME = re.compile("[A-Za-z][A-Za-z0-9_.-]{0,99}")
_registered: dict[str, StepSpec] = {}
# Apart from those of users, which neither replace one nor see it.
_built_in: dict[str, StepSpec] = {}


def step(
    name: str,
    *,
    parameters: type[BaseModel] = NoParameters,
    heavy: bool = False,
    repeatable: bool = True,
    sends: bool = False,
    **private: Any,
) -> Callable[[Function], Function]:
    """Register the decorated function as the step `name`.

    The function takes the StepContext and returns a StepResult or None. `heavy` sends the action to
    the heavy queue; `repeatable=False` keeps a step that was cut off from starting again; `sends`
    requires the action to name recipients; `private` is for Minutebook's own steps. Raises
    TypeError or ValueError for an invalid step and for a name that another module has registered.
    """
    _check_step(name, parameters)

    def register(function: Function) -> Function:
        _check_function(name, function)
        spec = StepSpec(name, parameters, function, heavy, repeatable, sends, **private)
        shelf = _built_in if spec.is_built_in else _registered
        known = getattr(shelf.get(name), "function", function)
        if known.__module__ != function.__module__:
            raise ValueError(
                f"step {name!r} of {function.__module__} is registered by "
                f"{known.__module__} already; give it another name"
            )
        shelf[name] = spec
        return function

    return register


def _check_step(name: object, parameters: object) -> None:
    if callable(name):
        raise TypeError('a step has a name: write @minutebook.step("name")')
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"step name {name!r}: write 1 to 100 letters, digits, _, - and ., with a letter first"
        )
    if not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
        raise TypeError(f"step {name!r}: parameters must be a class derived from BaseModel")


def _check_function(name: str, function: object) -> None:
    if not callable(function) or iscoroutinefunction(function):
        raise TypeError(f"step {name!r} must be a plain function, not a coroutine")
    try:
        signature(function).bind(None)
    except TypeError:
        raise TypeError(f"step {name!r} must take one argument, the context") from None
    except ValueError:
        return


def registered_steps() -> dict[str, StepSpec]:
    """Return the steps of users that are registered so far in this process, by name."""
    return dict(_registered)
