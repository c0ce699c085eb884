"""What followers send and get."""

from typing import Any, Literal
from uuid import UUID

from pydantic import Field, StrictBool, StrictInt

from models.errors import Refused
from services.view import Instant, RequestBody, Seconds, View

LONGEST_NAME = 200
# The largest that the table of workers takes.
LARGEST_PID = 2**31 - 1


class NotTaken(Refused):
    """The attempt does not start for this worker, and never will."""


class NotReady(Refused):
    """The attempt is not recorded yet, or is just being sent; ask again in a moment."""


class TakeRequest(RequestBody):
    """A worker that is about to run a task asks for its operation."""

    attempt: StrictInt = Field(ge=1, description="The attempt that the message names.")
    delivery: str = Field(
        min_length=8, max_length=100, description="Random: a take with the same one is the same."
    )
    worker: str = Field(max_length=LONGEST_NAME, description="Its name: information.")
    repeatable: StrictBool = Field(False, description="Whether the task may begin twice.")


class TimeLimits(View):
    """How long the task may run, and how long it may take to stop."""

    time_limit_s: Seconds = Field(description="Then the task should stop.")
    heartbeat_s: Seconds = Field(description="How often to renew the lease.")
    cancel_grace_s: Seconds = Field(description="How long a cancelled task may take to stop.")
    soft_limit_s: Seconds = Field(description="So long after the limit the task is interrupted.")
    hard_limit_s: Seconds = Field(description="So long after the limit it is cut off.")


class TakenOperation(View):
    """An operation that a worker holds, and what its task may read of it."""

    lease: str = Field(description="To be sent with each report.")
    limits: TimeLimits = Field(description="Its limits.")
    operation_id: UUID = Field(description="Id of the operation.")
    attempt: int = Field(description="Its attempt.")
    occurrence_at: Instant = Field(description="The instant at which it was due.")
    subject: str | None = Field(description="The user whom it is about.")
    triggerer: str = Field(description="Who caused it.")
    run_number: int = Field(description="How many runs of the action, with this one.")
    last_success_at: Instant | None = Field(description="Start of the last one that succeeded.")


class Beat(RequestBody):
    """A worker still runs a task."""

    lease: str = Field(max_length=LONGEST_NAME, description="As the take gave it.")
    progress: dict[str, Any] = Field(
        default_factory=dict, description="`done`, `total`, `message`, `phase`, `blocking`."
    )


class Beats(RequestBody):
    """A worker still runs several tasks."""

    beats: tuple[Beat, ...] = Field(max_length=1_000, description="One for each task.")


class BeatAnswer(View):
    """What a worker learns of the operation that it holds."""

    stop: str | None = Field(None, description="`cancelled`, or null to go on.")
    lost: bool = Field(False, description="Whether the lease is lost.")


class BeatAnswers(View):
    """What a worker learns of the operations that it holds, in the order of the request."""

    answers: tuple[BeatAnswer, ...] = Field(description="One for each task.")


class EndReport(RequestBody):
    """How a task ended."""

    lease: str = Field(max_length=LONGEST_NAME, description="As the take gave it.")
    outcome: Literal[
        "success", "failed", "retry", "replaced", "put back", "cut off", "cancelled", "time limit",
        "time box", "given back",
    ] = Field(description="How it ended.")  # fmt: skip
    error: str | None = Field(None, description="Why, in one sentence.")
    traceback: list[str] = Field(default_factory=list, description="Its last lines.")
    returned: str | None = Field(None, description="What it returned, as short text.")
    message: str | None = Field(None, description="One sentence, shown with the run.")
    progress: dict[str, Any] = Field(default_factory=dict, description="As in a beat.")
    by: str | None = Field(None, description="The task that replaced it.")
    is_followed: StrictBool = Field(True, description="Whether workers follow that one.")
    at: str | None = Field(None, description="When Celery retries it: an ISO 8601 instant.")
    delay_s: float | None = Field(None, description="In how many seconds Celery retries it.")


class Discarded(RequestBody):
    """A message whose task never runs."""

    attempt: StrictInt = Field(ge=1, description="The attempt that the message names.")
    worker: str = Field(max_length=LONGEST_NAME, description="The name of the worker.")
    what: Literal["revoked", "expired", "unknown", "rejected"] = Field(description="Why.")
    reason: str = Field(description="The same, in words.")


class LiveWorker(RequestBody):
    """A worker that follows, as it says every half minute."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, description="Its name.")
    pid: StrictInt = Field(ge=0, le=LARGEST_PID, description="Its process.")
    queues: tuple[str, ...] = Field(description="The queues that it consumes.")
    follows: tuple[str, ...] = Field(description="The tasks that it follows.")
    signatures: dict[str, list[str]] = Field(
        default_factory=dict, description="The parameters of these tasks."
    )
    stopping: StrictBool = Field(False, description="Whether it stops.")
