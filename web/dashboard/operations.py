"""Pages of operations, the runs of actions."""

import json
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from models.errors import NotFound, Refused, SchedulerError
from models.operation import ENDED, Cause, OperationState
from scheduler.on_demand.many import TAKES, USUALLY, ManyVerb
from services import apps, operations, runs
from services.installation import Installation
from services.operations.filter import OperationFilter
from services.operations.last_runs import runs_beside
from services.runs import many as bulk
from services.view import PAGE
from web.dashboard.drawing.bars import bars
from web.dashboard.drawing.gantt import gantt
from web.dashboard.fields import fields_of, in_zone
from web.dashboard.rendering import Page, redirect, render
from web.dashboard.session import Operator, Viewer, Visitor, is_fragment
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
# How far back errors are searched, unless the address says: they have no index.
ERRORS_SINCE = "P7D"
STATES = frozenset(OperationState)
CHANGES = {"cancel": runs.cancel, "retry": runs.retry}
MANY = {"retry": bulk.retry, "cancel": bulk.cancel}


class ListQuery(OperationFilter):
    """The fields of the form above the list, and the place of its page."""

    cursor: str | None = None

    @property
    def is_of_week(self) -> bool:
        """Whether an error is searched without an instant from which on."""
        return bool(self.reason and not self.since)

    def within(self, zone: str) -> OperationFilter:
        """Return what to list: instants without an offset are read in a zone."""
        since = ERRORS_SINCE if self.is_of_week else self.since and in_zone(self.since, zone)
        until = self.until and in_zone(self.until, zone)
        return self.model_copy(update={"since": since, "until": until})


Asked = Annotated[ListQuery, Query()]


@router.get("/operations")
def list_operations(request: Request, visitor: Viewer, asked: Asked) -> Response:
    """Show a page of the operations of a small app, or of all that the visitor may see.

    Words that are an id, or begin one, lead to that operation.
    """
    found, fault, status = None, "", 200
    opened, wanted = visitor.opened, asked.within(Page(request).zone)
    id = operations.with_id(opened, asked.q.strip())
    if id is not None:
        return RedirectResponse(Page(request).url(f"/operations/{id}"), 303)
    all_apps = not opened.is_bound
    try:
        found = operations.list_operations(opened, wanted, PAGE, asked.cursor, all_apps=all_apps)
    except SchedulerError as error:
        fault, status = error.on_page, 404 if isinstance(error, NotFound) else 422
    verbs = [verb for verb in MANY if not wanted.state or _takes(verb, wanted)]
    matching = (
        bulk.matching(opened, wanted, all_apps=all_apps) if found and verbs and wanted.state else 0
    )
    is_whole = found is not None and asked.cursor is None and found.next is None
    names = apps.app_names(visitor.whole)
    values = {
        "matching": matching,
        "count": len(found.items) if found and is_whole else matching,
        "verbs": verbs,
        "most": bulk.MOST,
        "found": found,
        "fault": fault,
        "asked": asked,
        "given": fields_of(asked),
        "states": list(OperationState),
        "causes": list(Cause),
        "apps": names,
        "names_apps": all_apps and len(names) > 1,
        "app": opened.app_name if opened.is_bound else "",
    }
    return render(request, "operations.html", values, status)


@router.post("/operations")
def change_many(request: Request, visitor: Operator, asked: Asked) -> Response:
    """Plan or do one of `MANY`, for the selected runs or for all that match the filters."""
    form, opened = visitor.form, visitor.opened
    verb = form.get("verb", "")
    if verb not in MANY:
        raise Refused(say("many.unknown", verb=verb))
    change, all_apps = MANY[verb], not opened.is_bound
    if "sure" in form:
        # Exactly those of the plan.
        chosen = bulk.Selection(ids=tuple(form.getlist("id")))
        done = change(opened, chosen, all_apps=all_apps)
        return redirect(request, _list_of(asked, opened), _told(done))
    if "id" not in form:
        raise Refused(say("many.none"))
    ids = [] if "all" in form else form.getlist("id")
    selection = _selection(verb, asked.within(Page(request).zone), ids)
    plan = change(opened, selection, dry_run=True, all_apps=all_apps)
    values = {
        "plan": plan,
        "back": _list_of(asked, opened),
    }
    return render(request, "many_operations.html", values)


@router.get("/operations/{id}")
def show_operation(request: Request, visitor: Viewer, id: str) -> HTMLResponse:
    """Show an operation; until it ends, htmx asks for its live part."""
    template = "operation_live.html" if is_fragment(request) else "operation.html"
    return render(request, template, _values(request, visitor, id))


@router.post("/operations/{id}/{verb}")
def change_operation(request: Request, visitor: Operator, id: str, verb: str) -> RedirectResponse:
    """Cancel or retry an operation."""
    if verb not in CHANGES:
        raise NotFound("no such page")
    CHANGES[verb](visitor.opened, id)
    return redirect(request, f"/operations/{id}", say(f"operation.done_{verb}"))


def _takes(verb: str, wanted: OperationFilter) -> bool:
    return all(state in TAKES[ManyVerb(verb)] for state in wanted.state)


def _selection(verb: str, wanted: OperationFilter, ids: list[str]) -> bulk.Selection:
    """Return the chosen runs; without any, all that match and are in a state that a verb takes."""
    if ids:
        return bulk.Selection(ids=tuple(ids))
    states = wanted.state or tuple(USUALLY[ManyVerb(verb)])
    return bulk.Selection(**wanted.model_dump(exclude={"state", "cursor"}), state=states)


def _list_of(asked: ListQuery, opened: Installation) -> str:
    """Return the list of the same filter, from its first page."""
    fields = fields_of(asked)
    if opened.is_bound:
        fields["app"] = opened.app_name
    return f"/operations?{urlencode(fields)}" if fields else "/operations"


def _told(done: bulk.Bulk) -> str:
    """Return what was done, in a sentence or two."""
    told = say(f"many.done_{done.verb}", count=done.count)
    left_out = sum(one.count for one in done.left_out)
    if left_out:
        told += " " + say("many.left_out", count=left_out, first=done.left_out[0].why)
    return told


def _values(request: Request, visitor: Visitor, id: str) -> dict[str, Any]:
    opened, page = visitor.opened, Page(request)
    shown = operations.show(opened, id)
    return {
        "app": shown.app,
        "shown": shown,
        "is_over": shown.state in ENDED,
        "why": shown.waits or shown.error or shown.reason,
        "known_states": STATES,
        "parts_of_run": gantt(shown, page.now),
        "bars": bars(runs_beside(opened, shown.action_uid), page.zone),
        "log": operations.log(opened, id).root,
        "result": json.dumps(shown.result, indent=2, ensure_ascii=False, default=str),
    }
