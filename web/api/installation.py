"""Endpoints of the whole installation: status, doctor, audit, tokens and channels."""

from pydantic import Field

from models.roles import Role
from views import audit, channels, overview, status, steps, tokens
from views.doctor import environment
from views.installation import Installation
from views.status import pauses
from views.view import RequestBody
from web.bodies import Body, reads_model, value_of
from web.routing import endpoints
from web.verbs import answers, serve

router = endpoints("installation")


class TokenRequest(RequestBody):
    """A token to make; `?app=` binds it to one small app."""

    role: Role = Field(description="What the token may do.")
    expires: str | None = Field(None, description="Lifetime as ISO 8601, such as `P90D`.")
    name: str | None = Field(None, description="The person or program that it is for.")


@answers(router, tokens.create, openapi_extra=reads_model(TokenRequest))
def create_token(opened: Installation, body: Body) -> tokens.NewToken:
    """Create a token; only this answer holds its text."""
    wanted = value_of(body, TokenRequest)
    return tokens.create(opened, wanted.role, wanted.expires, wanted.name)


serve(router, status, pauses, overview, environment, steps, audit, tokens, channels)
