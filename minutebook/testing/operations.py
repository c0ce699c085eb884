"""The operation of a followed task, for tests: no server, no database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from minutebook.followed import FollowedOperation, _current

T = TypeVar("T")

OCCURRENCE = datetime(2026, 11, 23, 6, tzinfo=timezone.utc)
OPERATION_ID = "1dd03b83-7b34-516e-8a7c-7ff8626a8a85"
TRIGGERER = "Manual run by tests"


@dataclass(frozen=True)
class Reported:
    """One call of `progress`."""

    done: int | None = None
    total: int | None = None
    message: str | None = None
    phase: str | None = None
    blocking: bool | None = None


class TestOperation(FollowedOperation):
    """An operation that keeps what its task reported, in `reported`.

    `should_stop()` returns True after `stops_after` calls; None: at the time limit alone.
    """

    # Keep pytest from collecting it by its name.
    __test__ = False

    def __init__(self, claim: dict[str, Any], stops_after: int | None) -> None:
        super().__init__(claim, TimeoutError, None)
        self.reported: list[Reported] = []
        self._stops_after = stops_after
        self._asked = 0

    def progress(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        super().progress(done, total, message, phase, blocking=blocking)
        self.reported.append(Reported(done, total, message, phase, blocking))

    def should_stop(self) -> bool:
        """Return whether the task has asked more than `stops_after` times, or its time is up."""
        self._asked += 1
        is_asked = self._stops_after is not None and self._asked > self._stops_after
        return is_asked or super().should_stop()

    def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns, while this is the current operation."""
        mark = _current.set(self)
        try:
            return call()
        finally:
            _current.reset(mark)


def make_operation(
    *,
    time_limit: timedelta = timedelta(hours=4),
    stops_after: int | None = None,
    **changes: Any,
) -> TestOperation:
    """Return an operation to run a task in, with defaults for all that the test omits.

    `changes` are `operation_id`, `occurrence_at`, `attempt`, `subject`, `triggerer`, `run_number`
    and `last_success_at`; instants are aware.
    """
    values = {
        "operation_id": OPERATION_ID,
        "occurrence_at": OCCURRENCE,
        "attempt": 1,
        "subject": None,
        "triggerer": TRIGGERER,
        "run_number": 1,
        "last_success_at": None,
    }
    unknown = set(changes) - set(values)
    if unknown:
        raise TypeError(f"an operation has no {min(unknown)!r}; it has {', '.join(values)}")
    limits = {
        "time_limit_s": time_limit.total_seconds(),
        "heartbeat_s": 10.0,
        "cancel_grace_s": 30.0,
        "soft_limit_s": 30.0,
        "hard_limit_s": 60.0,
    }
    claim = {**values, **changes, "limits": limits, "lease": "test"}
    for name in ("occurrence_at", "last_success_at"):
        at = claim[name]
        claim[name] = at.isoformat() if isinstance(at, datetime) else at
    claim["operation_id"] = str(claim["operation_id"])
    return TestOperation(claim, stops_after)


def run_followed(
    task: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    operation: TestOperation | None = None,
) -> Any:
    """Return what a Celery task returns, run here as Minutebook's; raises what it raises.

    `current_operation()` is `operation` meanwhile, by default one of `make_operation`. The task
    runs in this process, by Celery's `apply`, under the operation's id.
    """
    found = operation or make_operation()
    id = str(found.operation_id)
    # A worker in the process of the test, too, forbids its tasks to wait for others.
    return found.run(
        lambda: task.apply(args, kwargs, task_id=id, throw=True).get(disable_sync_subtasks=False)
    )
