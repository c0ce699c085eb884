"""The step `job`: work for a worker in any language, which asks for it over HTTP."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from minutebook.steps import StepContext, step
from models.document import Document
from models.errors import UnknownStep
from models.job import JOB, Job
from models.values import FreeJson, Url

LONGEST_META = 4 * 1024


def _short_enough(meta: dict[str, FreeJson]) -> dict[str, FreeJson]:
    length = len(json.dumps(meta, ensure_ascii=False, separators=(",", ":")).encode())
    if length > LONGEST_META:
        raise ValueError(f"is too long ({length} bytes as JSON); write at most {LONGEST_META}")
    return meta


class JobParameters(Document):
    """The URL of the work, and what its worker gets with it."""

    url: Url
    meta: Annotated[dict[str, FreeJson], AfterValidator(_short_enough)] = Field(
        default_factory=dict
    )


def _job(parameters: Mapping[str, Any]) -> Job:
    read = JobParameters.model_validate(parameters)
    return Job(read.url, read.meta)


@step(JOB, parameters=JobParameters, alone=True, order=70, job=_job, example={"url": ""})
def run(_context: StepContext) -> None:
    """Refuse: workers of any language take the job over HTTP, never ours."""
    raise UnknownStep(f"this worker does not know the step {JOB!r}")
