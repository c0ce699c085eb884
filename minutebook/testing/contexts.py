"""Test your own steps: a StepContext without the rest of Minutebook."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from minutebook.steps import NoParameters, Recipient, SmallApp, StepContext
from minutebook.testing.operations import OCCURRENCE, OPERATION_ID, TRIGGERER, Reported


@dataclass
class TestContext(StepContext):
    """A context that keeps what the step reported, in `reported`.

    `should_stop()` returns True after `stops_after` calls; None: never.
    """

    # Keep pytest from collecting it by its name.
    __test__ = False

    left: timedelta = timedelta(hours=4)
    stops_after: int | None = None
    reported: list[Reported] = field(default_factory=list)
    _asked: int = 0

    def progress(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        self.reported.append(Reported(done, total, message, phase, blocking))

    def time_left(self) -> timedelta:
        """Return the test's time, or zero once the step should stop."""
        is_over = self.stops_after is not None and self._asked > self.stops_after
        return timedelta(0) if is_over else self.left

    def should_stop(self) -> bool:
        """Return whether the step has called more than `stops_after` times."""
        self._asked += 1
        return self.stops_after is not None and self._asked > self.stops_after


def make_context(
    parameters: BaseModel | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    recipients: Sequence[Recipient] = (),
    stops_after: int | None = None,
    **changes: Any,
) -> TestContext:
    """Return a context to call a step with, with defaults for all that the test omits.

    `changes` are fields of StepContext, such as `checkpoint` or `last_success_at`.
    """
    app = SmallApp(1, "default", "UTC", MappingProxyType(dict(settings or {})))
    values: dict[str, Any] = {
        "operation_id": UUID(OPERATION_ID),
        "occurrence_at": OCCURRENCE,
        "attempt": 1,
        "subject": None,
        "triggerer": TRIGGERER,
        "parameters": parameters or NoParameters(),
        "small_app": app,
        "recipients": recipients,
        "run_number": 1,
        "last_success_at": None,
        "checkpoint": {},
        "logger": logging.getLogger("minutebook.testing"),
    }
    return TestContext(**{**values, **changes}, stops_after=stops_after)
