"""Endpoints of operations, the runs of actions."""

from collections.abc import Collection
from typing import Annotated

from fastapi import Query, Request, Response

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
from web.routing import SharedRead, endpoints
from web.together import answer, json_of
from web.verbs import answers, serve

router = endpoints("operations")
shared = endpoints("operations", kind=SharedRead)
Reader = Annotated[Installation, in_app(Permission.READ)]
# The small app in which an operation is looked for, None for all, and its id.
Asked = tuple[str | None, str]


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


@answers(shared, operations.show, response_model=operations.Operation)
async def show_operation(request: Request, opened: Installation, id: str) -> Response:
    """Show an operation with its attempts and notices."""
    return answer(await request.app.state.shown.get(_asked(opened, id)))


@answers(shared, operations.state, response_model=operations.OperationStateView)
async def get_operation_state(request: Request, opened: Installation, id: str) -> Response:
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


serve(router, operations, many, runs.cancel, runs.retry, runs.rerun)
