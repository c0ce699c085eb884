"""Endpoints of operations, the runs of actions."""

from collections.abc import Collection
from typing import Annotated

from fastapi import Query, Request, Response

from models.operation import Cause, OperationState
from models.roles import Permission
from views import operations, runs
from views.installation import Installation
from web.access import in_app
from web.paging import PAGE, Cursor, Limit
from web.routing import SharedRead, endpoints
from web.together import answer, json_of

router = endpoints("operations", "/api")
shared = endpoints("operations", "/api", SharedRead)
Reader = Annotated[Installation, in_app(Permission.READ)]
Operator = Annotated[Installation, in_app(Permission.OPERATE)]
# The small app in which an operation is looked for, None for all, and its id.
Asked = tuple[str | None, str]


@router.get("/operations")
def list_operations(
    opened: Reader,
    action: str | None = None,
    state: Annotated[list[OperationState] | None, Query()] = None,
    cause: Annotated[list[Cause] | None, Query()] = None,
    since: Annotated[str | None, Query(description="Recorded from then on.")] = None,
    until: Annotated[str | None, Query(description="Recorded before then.")] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    all_apps: bool = False,
) -> operations.OperationPage:
    """Return a page of the operations of a small app, or of all; the last recorded first."""
    wanted = operations.Filter(
        action=action,
        states=tuple(state or ()),
        causes=tuple(cause or ()),
        since=since,
        until=until,
    )
    return operations.page(opened, wanted, limit, cursor, all_apps=all_apps)


@router.get("/operations:newest")
def list_newest(
    opened: Reader,
    action: str | None = None,
    state: Annotated[list[OperationState] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 20,
    since: Annotated[
        str | None,
        Query(description="Of occurrences from then on; a duration such as P1D is back from now."),
    ] = None,
    all_apps: bool = False,
) -> operations.Operations:
    """List the operations of the latest occurrences of a small app, or of all; newest first."""
    wanted = (action, state or (), limit, since)
    return operations.list_operations(opened, *wanted, all_apps=all_apps)


@shared.get("/operations/{id}", response_model=operations.Operation)
async def show_operation(request: Request, opened: Reader, id: str) -> Response:
    """Show an operation with its attempts and notices."""
    return answer(await request.app.state.shown.get(_asked(opened, id)))


@shared.get("/operations/{id}/state", response_model=operations.OperationStateView)
async def get_operation_state(request: Request, opened: Reader, id: str) -> Response:
    """Return the state of an operation, `unknown` if it does not exist."""
    return answer(await request.app.state.states.get(_asked(opened, id)))


def read_shown(opened: Installation, asked: Collection[Asked]) -> dict[Asked, bytes]:
    """Return each operation for the requests that asked at the same time; raises NotFound."""
    return {(app, id): json_of(operations.show(opened.seen_in(app), id)) for app, id in asked}


def read_states(opened: Installation, asked: Collection[Asked]) -> dict[Asked, bytes]:
    """Return the states that are asked for in one small app, or in the installation."""
    (app,) = {app for app, _ in asked}
    found = operations.states(opened.seen_in(app), [id for _, id in asked])
    return {(app, id): json_of(state) for id, state in found.items()}


def _asked(opened: Installation, id: str) -> Asked:
    return (opened.app_name if opened.is_bound else None), id


@router.get("/operations/{id}/logs")
def show_logs(opened: Reader, id: str) -> operations.Log:
    """Return the last log lines of an operation's steps."""
    return operations.log(opened, id)


@router.post("/operations/{id}:cancel")
def cancel_operation(opened: Operator, id: str) -> runs.Cancelled:
    """Cancel an operation at once if it has not started; ask a running one to end."""
    return runs.cancel(opened, id)


@router.post("/operations/{id}:retry", status_code=202)
def retry_operation(opened: Operator, id: str) -> runs.Repeated:
    """Retry a failed, partial or cancelled operation under its action's current revision."""
    return runs.retry(opened, id)


@router.post("/operations/{id}:rerun", status_code=202)
def rerun_operation(opened: Operator, id: str) -> runs.Repeated:
    """Run a missed operation under its action's current revision."""
    return runs.rerun(opened, id)
