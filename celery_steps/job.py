"""The step `job`: work for a worker in any language, over HTTP, in a later release."""

from pydantic import Field, JsonValue

from minutehand.steps import StepContext, step
from models.document import Document
from models.errors import UnknownStep
from models.values import Url


class JobParameters(Document):
    """The URL of the work, and what its worker gets with it."""

    url: Url
    meta: dict[str, JsonValue] = Field(default_factory=dict)


@step("job", parameters=JobParameters, alone=True, order=60, available=False)
def run(_context: StepContext) -> None:
    raise UnknownStep("this worker does not know the step 'job'")
