"""Pages of operations, the runs of actions."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

from models.errors import NotFound, SchedulerError
from models.operation import ENDED, Cause, OperationState
from views import apps, operations, runs
from views.operation_filter import Filter
from web.dashboard import drawing
from web.dashboard.instants import in_zone
from web.dashboard.rendering import Page, render, render_part, see
from web.dashboard.session import Operator, Viewer, Visitor
from web.dashboard.texts import say
from web.live import UNAUTHORIZED

router = APIRouter(include_in_schema=False)
PAGE = 50
STATES = frozenset(OperationState)
CHANGES = {"cancel": runs.cancel, "retry": runs.retry, "rerun": runs.rerun}


class OperationQuery(BaseModel):
    """The fields of the form above the list; an empty one admits all."""

    action: str = ""
    name: str = ""
    state: str = ""
    cause: str = ""
    since: str = ""
    until: str = ""
    cursor: str | None = None

    def filter(self, zone: str) -> Filter:
        """Return what to list; a state or a cause that does not exist admits all."""
        return Filter(
            action=self.action or None,
            words=self.name,
            states=(OperationState(self.state),) if self.state in STATES else (),
            causes=(Cause(self.cause),) if self.cause in set(Cause) else (),
            since=in_zone(self.since, zone) or None,
            until=in_zone(self.until, zone) or None,
        )


@router.get("/operations")
def list_operations(
    request: Request, visitor: Viewer, asked: Annotated[OperationQuery, Query()]
) -> HTMLResponse:
    """Show a page of the operations of a small app, or of all that the visitor may see."""
    found, fault, status = None, "", 200
    opened, wanted = visitor.opened, asked.filter(Page(request).zone)
    all_apps = not opened.is_bound
    try:
        found = operations.page(opened, wanted, PAGE, asked.cursor, all_apps=all_apps)
    except SchedulerError as error:
        fault, status = error.on_page, 404 if isinstance(error, NotFound) else 422
    names = apps.app_names(visitor.whole)
    values = {
        "found": found,
        "fault": fault,
        "asked": asked,
        "states": list(OperationState),
        "causes": list(Cause),
        "apps": names,
        "names_apps": all_apps and len(names) > 1,
        "app": opened.app_name if opened.is_bound else "",
    }
    return render(request, "operations.html", values, status)


@router.get("/operations/{id}")
def show_operation(request: Request, visitor: Viewer, id: str) -> HTMLResponse:
    """Show an operation."""
    return render(request, "operation.html", _values(visitor, id))


async def _uid(visitor: Viewer, id: str) -> UUID:
    shown = await anyio.to_thread.run_sync(operations.show, visitor.opened, id)
    return shown.id


@router.get("/operations/{id}/live", response_class=EventSourceResponse)
async def watch_operation(
    request: Request, visitor: Viewer, uid: Annotated[UUID, Depends(_uid)]
) -> AsyncIterator[ServerSentEvent]:
    """Send the live part of the page whenever the operation changes, up to its end."""
    live = request.app.state.live_operations
    async for event in live.listen(uid, None, visitor.session_id):
        if event.event == UNAUTHORIZED:
            following = {"following": f"/operations/{uid}"}
            yield ServerSentEvent(raw_data=render_part(request, "session_over.html", following))
            yield ServerSentEvent(event="over", raw_data="")
        if event.id is None:
            return
        values = await anyio.to_thread.run_sync(_values, visitor, str(uid))
        text = render_part(request, "operation_live.html", values)
        yield ServerSentEvent(id=event.id, raw_data=text)
        if values["is_over"]:
            # Otherwise the browser would connect again.
            yield ServerSentEvent(event="over", raw_data="")
            return


@router.post("/operations/{id}/{verb}")
def change_operation(request: Request, visitor: Operator, id: str, verb: str) -> RedirectResponse:
    """Cancel, retry or rerun an operation."""
    if verb not in CHANGES:
        raise NotFound("no such page")
    CHANGES[verb](visitor.opened, id)
    return see(request, f"/operations/{id}", say(f"operation.done_{verb}"))


def _values(visitor: Visitor, id: str) -> dict[str, Any]:
    opened = visitor.opened
    shown = operations.show(opened, id)
    begun = shown.attempts[0].started_at if shown.attempts else shown.started_at
    instants = (
        ("due", shown.occurrence_at),
        ("recorded", shown.recorded_at),
        ("sent", shown.queued_at),
        ("started", begun),
        ("ended", shown.finished_at),
    )
    return {
        "app": shown.app,
        "shown": shown,
        "is_over": shown.state in ENDED,
        "known_states": STATES,
        "steps": [_step(one) for one in shown.steps] if isinstance(shown.steps, list) else [],
        "log": operations.log(opened, id).root,
        "result": json.dumps(shown.result, indent=2, ensure_ascii=False, default=str),
        "instants": instants,
        "stages": drawing.waterfall(instants),
    }


def _step(stored: Any) -> dict[str, Any]:
    """Return a step with each key that the page shows: a broken row may lack some."""
    known = stored if isinstance(stored, dict) else {"name": str(stored)}
    return {key: known.get(key) for key in ("name", "state", "message", "error")}
