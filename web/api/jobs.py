"""Endpoints of jobs, for workers in any language."""

from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from pydantic import AwareDatetime, BeforeValidator, Field, WithJsonSchema
from starlette.routing import Route

from models import values
from models.roles import Permission
from services import jobs
from services.installation import Installation
from services.jobs import work
from services.jobs.claim import JobToDo
from services.jobs.work import JobStanding, WorkerTimes
from services.view import RequestBody
from web.access import in_app
from web.dispatcher import JobDispatcher
from web.plain import Door, post
from web.problems import ProblemDetails
from web.routing import endpoints
from web.verbs import serve

router = endpoints("jobs")
routes: list[Route] = []
LONGEST_REPORT = 4 * 1024
Queue = Annotated[
    values.Queue, Query(pattern=f"^{values.QUEUE_PATTERN.pattern}$", description="Whose jobs.")
]
NEXT: dict[int | str, dict[str, Any]] = {
    204: {"description": "No job came within `SCHED_WORK_POP_TIMEOUT_S`."},
    429: {"model": ProblemDetails, "description": "The token has 50 requests open."},
    503: {"model": ProblemDetails, "description": "The server is stopping; ask again later."},
}


class JobReport(RequestBody):
    """What a worker says of the job that it holds."""

    lease: str | None = Field(
        None, max_length=100, description="As it was handed out; a first attempt does without."
    )


# Seconds since 1970, of which 0 means unknown, or an instant.
Measured = Annotated[
    AwareDatetime | None,
    BeforeValidator(lambda value: None if value == 0 else value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]}),
]


class EndedJob(JobReport):
    """How a worker's job ended, and when it says that it began."""

    scheduled_at: Measured = Field(None, description="Seconds since 1970, or an instant: logged.")
    picked_up_at: Measured = Field(None, description="When it took the job, in the same form.")

    @property
    def times(self) -> WorkerTimes:
        """What its worker measured."""
        return WorkerTimes(self.scheduled_at, self.picked_up_at)


class CompletedJob(EndedJob):
    """A job that is done."""

    result: dict[str, Any] = Field(default_factory=dict, description="Figures, kept with the run.")
    message: str | None = Field(None, description="One sentence, shown with the run.")


class FailedJob(EndedJob):
    """A job that failed; the policy of its action decides on a retry."""

    error: str = Field(min_length=1, description="Why, in one sentence.")
    permanent: bool = Field(False, description="Whether a retry cannot help.")


class JobProgress(JobReport):
    """How far a job is."""

    done: int | None = Field(None, ge=0, description="How much is done, of `total`.")
    total: int | None = Field(None, ge=0, description="How much there is to do.")
    message: str | None = Field(None, description="One sentence, shown while the job runs.")
    phase: str | None = Field(None, description="What the job is doing, in a word.")
    blocking: bool | None = Field(None, description="Whether pages cover the app's data meanwhile.")


async def _app_id(
    opened: Annotated[Installation, in_app(Permission.WORK)],
) -> tuple[int | None, str]:
    """Return the small app whose jobs may be taken, None for any, and the token that asks."""
    return opened.scope.small_app_id, opened.actor


Asker = Annotated[tuple[int | None, str], Depends(_app_id)]


async def _gone(request: Request) -> None:
    """Return when the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


@router.get("/jobs/next", response_model=JobToDo, responses=NEXT)
async def next_job(request: Request, asker: Asker, queue: Queue = "quick") -> Any:
    """Take the next job of a queue; waits for one."""
    dispatcher: JobDispatcher = request.app.state.dispatcher
    app_id, token = asker
    address = request.client.host if request.client else "-"
    worker, gone = f"{token} at {address}", partial(_gone, request)
    with request.app.state.open_requests.one(token):
        job = await dispatcher.next(app_id, queue, worker, gone)
    return Response(status_code=204) if job is None else job


def complete_job(opened: Installation, id: str, done: CompletedJob) -> None:
    """Report a job as done; the same again changes nothing. 409 if another worker has it."""
    work.complete(opened, id, done.lease, done.result, done.message, done.times)


def fail_job(opened: Installation, id: str, failed: FailedJob) -> None:
    """Report a job as failed; the same again changes nothing. 409 if another worker has it."""
    lease, error, times = failed.lease, failed.error, failed.times
    work.fail(opened, id, lease, error, permanent=failed.permanent, times=times)


def keep_job(opened: Installation, id: str, said: JobReport) -> JobStanding:
    """Renew the lease of a job, and learn whether to stop; 409 if it is lost."""
    return work.keep(opened, id, said.lease, {})


def report_progress(opened: Installation, id: str, said: JobProgress) -> JobStanding:
    """Show how far a job is; this renews its lease as well."""
    progress = said.model_dump(exclude={"lease"}, exclude_none=True)
    return work.keep(opened, id, said.lease, progress)


_door = Door(Permission.WORK, LONGEST_REPORT)
post(router, routes, "/jobs/{id}/complete", complete_job, _door)
post(router, routes, "/jobs/{id}/error", fail_job, _door)
post(router, routes, "/jobs/{id}/beat", keep_job, _door)
post(router, routes, "/jobs/{id}/progress", report_progress, _door)
serve(router, jobs)
