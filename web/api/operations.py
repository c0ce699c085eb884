"""Endpoints of operations, the runs of actions."""

from typing import Annotated

from fastapi import Query

from models.operation import Cause, OperationState
from models.roles import Permission
from models.store.operations.pages.ranking import OperationOrder
from views import operations, runs
from views.installation import Installation
from views.operations import paged
from views.operations.filter import Filter
from views.runs import many
from web.access import in_app
from web.paging import PAGE, Cursor, Limit
from web.routing import endpoints
from web.verbs import serve

router = endpoints("operations")
Reader = Annotated[Installation, in_app(Permission.READ)]


@router.get("/api/operations")
def list_operations(
    opened: Reader,
    action: str | None = None,
    state: Annotated[list[OperationState] | None, Query()] = None,
    cause: Annotated[list[Cause] | None, Query()] = None,
    since: Annotated[str | None, Query(description="Recorded from then on.")] = None,
    until: Annotated[str | None, Query(description="Recorded before then.")] = None,
    reason: Annotated[
        str | None, Query(description="With this text in why it is in its state, or its error.")
    ] = None,
    task: Annotated[str | None, Query(description="Of this Celery task.")] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    sort: Annotated[
        OperationOrder,
        Query(description="`duration` and `lateness` are of the newest thousand that match."),
    ] = OperationOrder.TIME,
    all_apps: bool = False,
) -> operations.OperationPage:
    """Return a page of the operations of a small app, or of all; the last recorded first."""
    wanted = Filter(
        action=action,
        states=tuple(state or ()),
        causes=tuple(cause or ()),
        since=since,
        until=until,
        reason=reason,
        task=task,
    )
    return paged.page(opened, wanted, limit, cursor, sort, all_apps=all_apps)


serve(router, operations, many, runs.cancel, runs.retry)
