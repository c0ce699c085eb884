"""Streams of server-sent events: each new version of an operation, or of an app's status."""

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Header, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from models.roles import Permission
from views import apps, operations
from views.installation import Installation
from web.access import by_id, of_app
from web.routing import endpoints

router = endpoints("live", "/api")
LastId = Annotated[
    str | None, Header(description="The id of the last event; it is not sent again.")
]


def _operation(opened: Annotated[Installation, by_id(Permission.READ)], id: str) -> UUID:
    return operations.show(opened, id).id


def _app(opened: Annotated[Installation, of_app(Permission.READ)], app: str) -> str:
    apps.status(opened, app)
    return app


@router.get("/operations/{id}/events", response_class=EventSourceResponse)
async def operation_events(
    request: Request, uid: Annotated[UUID, Depends(_operation)], last_event_id: LastId = None
) -> AsyncIterator[ServerSentEvent]:
    """Stream an operation as it changes, as events `operation`."""
    async for event in request.app.state.live_operations.listen(
        uid, last_event_id, request.state.token_id
    ):
        yield event


@router.get("/apps/{app}/status/events", response_class=EventSourceResponse)
async def status_events(
    request: Request, name: Annotated[str, Depends(_app)], last_event_id: LastId = None
) -> AsyncIterator[ServerSentEvent]:
    """Stream the status of a small app's data as it changes, as events `status`."""
    async for event in request.app.state.live_statuses.listen(
        name, last_event_id, request.state.token_id
    ):
        yield event
