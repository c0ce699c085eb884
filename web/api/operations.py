"""Endpoints of operations, the runs of actions."""

from typing import Annotated

from fastapi import Query

from models.operation import Cause, OperationState
from models.roles import Permission
from views import operations, runs
from views.installation import Installation
from web.access import in_app
from web.routing import endpoints

router = endpoints("operations", "/api")
Reader = Annotated[Installation, in_app(Permission.READ)]
Operator = Annotated[Installation, in_app(Permission.OPERATE)]
Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/operations")
def list_operations(
    opened: Reader,
    action: str | None = None,
    state: Annotated[list[OperationState] | None, Query()] = None,
    cause: Annotated[list[Cause] | None, Query()] = None,
    since: Annotated[str | None, Query(description="Recorded from then on.")] = None,
    until: Annotated[str | None, Query(description="Recorded before then.")] = None,
    limit: Limit = 50,
    cursor: str | None = None,
    all_apps: bool = False,
) -> operations.OperationPage:
    """Return a page of the operations of a small app, or of the first 100; last recorded first."""
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


@router.get("/operations/{id}")
def show_operation(opened: Reader, id: str) -> operations.Operation:
    """Show an operation with its attempts and notices."""
    return operations.show(opened, id)


@router.get("/operations/{id}/state")
def get_operation_state(opened: Reader, id: str) -> operations.OperationStateView:
    """Return the state of an operation, `unknown` if it does not exist."""
    return operations.state(opened, id)


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
