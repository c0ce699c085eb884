"""Endpoints of the whole installation: status, doctor, audit, tokens and channels."""

from pydantic import Field

from models.roles import Role
from services import audit, channels, overview, status, steps, tokens
from services.doctor import environment
from services.installation import Installation
from services.status import pauses
from services.status.pauses import PauseChange
from services.view import RequestBody
from web.bodies import Body, reads_model, value_of
from web.routing import endpoints
from web.verbs import answers, serve

router = endpoints("installation")


class TokenRequest(RequestBody):
    """A token to make; `?app=` binds it to one small app."""

    role: Role = Field(description="What the token may do.")
    expires: str | None = Field(None, description="Lifetime as ISO 8601, such as `P90D`.")
    name: str | None = Field(None, description="The person or program that it is for.")
    tasks: tuple[str, ...] | None = Field(
        None, description="Patterns of Celery tasks that a worker follows; it then takes no jobs."
    )


@answers(router, tokens.create, openapi_extra=reads_model(TokenRequest))
def create_token(opened: Installation, body: Body) -> tokens.NewToken:
    """Create a token; only this answer holds its text."""
    wanted = value_of(body, TokenRequest)
    return tokens.create(opened, wanted.role, wanted.expires, wanted.name, wanted.tasks)


class ResumeRequest(RequestBody):
    """What to send again; without a field the small app of `?app=`, or of the token."""

    queue: str | None = Field(None, description="A queue, as `GET /api/queues` names it.")
    everything: bool = Field(False, description="Whether it is all that is sent.")


class PauseRequest(ResumeRequest):
    """What to pause; without `queue` and `everything` the small app of `?app=`, or of the token."""

    until: str | None = Field(None, description="Its end: an instant, or a span such as `PT1H`.")
    reason: str | None = Field(None, description="Why, for those who find it paused.")


@answers(router, pauses.pause, openapi_extra=reads_model(PauseRequest))
def pause(opened: Installation, body: Body) -> PauseChange:
    """Send nothing of a queue, of the small app that the request names, or at all, until an end."""
    asked = value_of(body, PauseRequest)
    return pauses.pause(opened, asked.queue, asked.everything, asked.until, asked.reason)


@answers(router, pauses.resume, openapi_extra=reads_model(ResumeRequest))
def resume(opened: Installation, body: Body) -> PauseChange:
    """End a pause; the next tick sends what waited for its end."""
    asked = value_of(body, ResumeRequest)
    return pauses.resume(opened, asked.queue, asked.everything)


serve(router, status, pauses, overview, environment, steps, audit, tokens, channels)
