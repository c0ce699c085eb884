"""The step `celery_task`: sends a task of the user's own Celery application."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue

from minutehand.steps import StepContext, step
from models.celery_task import HandOver
from models.document import Document
from models.errors import UnknownStep
from models.values import CeleryQueue, Name, one_of, parse_list

STEP = "celery_task"


# A field called `kwargs` collides with the **kwargs that mypy's plugin gives to __init__.
class CeleryTaskParameters(Document):  # type: ignore[no-redef]
    """A task of the user's Celery application.

    `in_doubt` is what to do if it is uncertain whether the broker took the message.
    """

    task: Name
    args: Annotated[tuple[JsonValue, ...], BeforeValidator(parse_list)] = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    queue: CeleryQueue | None = None
    in_doubt: Annotated[
        Literal["leave", "send_again"], BeforeValidator(one_of("leave", "send_again"))
    ] = "leave"


def _hand_over(parameters: Mapping[str, Any]) -> tuple[HandOver, str | None]:
    read = CeleryTaskParameters.model_validate(parameters)
    return HandOver(read.task, read.args, read.kwargs, read.in_doubt), read.queue


@step(
    STEP,
    parameters=CeleryTaskParameters,
    alone=True,
    order=60,
    hand_over=_hand_over,
    example={"task": ""},
)
def run(_context: StepContext) -> None:
    """Refuse: the daemon sends the task to the application's workers, never to ours."""
    raise UnknownStep(f"this worker does not know the step {STEP!r}")
