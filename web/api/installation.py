"""Endpoints of the whole installation: status, doctor, audit and tokens."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from models.json_text import LARGEST_NUMBER
from models.roles import Permission, Role
from views import audit, overview, status, steps, tokens
from views.doctor import environment, report
from views.installation import Installation
from views.status import quiet
from views.view import RequestBody
from web.access import in_app, of_installation
from web.bodies import Body, reads_model, value_of
from web.paging import LINKED, Linked
from web.routing import endpoints

router = endpoints("installation", "/api")
Reader = Annotated[Installation, of_installation(Permission.READ)]
Operator = Annotated[Installation, of_installation(Permission.OPERATE)]
Admin = Annotated[Installation, of_installation(Permission.ADMINISTER)]
AdminOfApp = Annotated[Installation, in_app(Permission.ADMINISTER)]


class TokenRequest(RequestBody):
    """A token to make; `?app=` binds it to one small app."""

    role: Role
    expires: str | None = Field(None, description="Lifetime as ISO 8601, such as `P90D`.")


@router.get("/status")
def show_installation(opened: Reader) -> status.Status:
    """Show the daemon, workers, and operations of the last day."""
    return status.status(opened)


@router.post("/installation:pause")
def pause_installation(opened: Operator, until: str) -> quiet.QuietPeriod:
    """Begin a quiet period, or move its end; what is due is recorded, and sent afterwards."""
    return quiet.pause(opened, until)


@router.post("/installation:resume")
def resume_installation(opened: Operator) -> quiet.QuietPeriod:
    """End the quiet period; the next tick sends what waited."""
    return quiet.resume(opened)


@router.get("/overview")
def show_overview(opened: Annotated[Installation, in_app(Permission.READ)]) -> overview.Overview:
    """Show whether all is well, what runs, what needs attention, and what comes next."""
    return overview.overview_of(opened)


@router.get("/doctor")
def run_doctor(opened: Admin) -> report.Report:
    """Check everything that Minutebook needs; change nothing."""
    return environment.examine(opened)


@router.get("/steps")
def list_steps(opened: Annotated[Installation, in_app(Permission.READ)]) -> steps.Steps:
    """List the steps that actions may name."""
    return steps.list_steps(opened)


@router.get("/audit")
def list_audit(
    opened: AdminOfApp,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[
        int | None, Query(ge=1, le=LARGEST_NUMBER, description="`next` of the page before.")
    ] = None,
) -> audit.AuditPage:
    """Return who changed what, the newest first."""
    return audit.list_entries(opened, limit, before)


@router.get("/tokens", responses=LINKED)
def list_tokens(opened: AdminOfApp, asked: Linked) -> tokens.Tokens:
    """List the tokens that are not revoked, without their secrets, the newest first."""
    return tokens.Tokens(asked.items(tokens.list_tokens(opened, asked.limit, asked.cursor)))


@router.post("/tokens", status_code=201, openapi_extra=reads_model(TokenRequest))
def create_token(opened: AdminOfApp, body: Body) -> tokens.NewToken:
    """Create a token; only this answer holds its text."""
    wanted = value_of(body, TokenRequest)
    return tokens.create(opened, wanted.role, wanted.expires)


@router.delete("/tokens/{id}")
def revoke_token(opened: AdminOfApp, id: str) -> tokens.RevokedToken:
    """Revoke a token, at once."""
    return tokens.revoke(opened, id)
