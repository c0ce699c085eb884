"""Pages of operations, the runs of actions."""

import json
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel

from models.errors import NotFound, Refused, SchedulerError
from models.operation import ENDED, Cause, OperationState
from models.store.operations.pages.ranking import OperationOrder
from scheduler.on_demand.many import TAKES, USUALLY, ManyVerb
from views import apps, operations, runs
from views.installation import Installation
from views.operations import paged
from views.operations.filter import Filter
from views.runs import many as bulk
from views.view import LARGEST_PAGE
from web.dashboard.drawing.gantt import gantt
from web.dashboard.fields import in_zone, one_of
from web.dashboard.rendering import Page, render, see
from web.dashboard.session import Operator, Viewer, Visitor, is_fragment
from web.dashboard.texts import say
from web.paging import file_of

router = APIRouter(include_in_schema=False)
PAGE = 50
# The filters that a change of many keeps.
FIELDS = ("action", "name", "state", "cause", "reason", "task", "since", "until")
# How far back errors are searched, unless the address says: they have no index.
ERRORS_SINCE = "P7D"
# Of a file in CSV.
COLUMNS = (
    "id", "app", "action_name", "occurrence_at", "state", "reason", "cause", "triggerer", "subject",
    "queue", "attempt", "recorded_at", "started_at", "finished_at", "worker", "error",
)  # fmt: skip
STATES = frozenset(OperationState)
CHANGES = {"cancel": runs.cancel, "retry": runs.retry}
MANY = {"retry": bulk.retry, "cancel": bulk.cancel}


class OperationQuery(BaseModel):
    """The fields of the form above the list; an empty one admits all."""

    action: str = ""
    name: str = ""
    state: str = ""
    cause: str = ""
    reason: str = ""
    task: str = ""
    since: str = ""
    until: str = ""
    sort: str = ""
    cursor: str | None = None

    @property
    def order(self) -> OperationOrder:
        """The order to list them in; raises Refused for one that does not exist."""
        return next(iter(one_of(OperationOrder, "sort", self.sort)), OperationOrder.TIME)

    @property
    def is_of_week(self) -> bool:
        """Whether an error is searched without an instant from which on."""
        return bool(self.reason and not self.since)

    def filter(self, zone: str) -> Filter:
        """Return what to list; raises Refused for a state or a cause that does not exist."""
        since = ERRORS_SINCE if self.is_of_week else in_zone(self.since, zone)
        return Filter(
            action=self.action or None,
            words=self.name,
            states=one_of(OperationState, "state", self.state),
            causes=one_of(Cause, "cause", self.cause),
            reason=self.reason or None,
            task=self.task or None,
            since=since or None,
            until=in_zone(self.until, zone) or None,
        )


@router.get("/operations")
def list_operations(
    request: Request, visitor: Viewer, asked: Annotated[OperationQuery, Query()]
) -> Response:
    """Show a page of the operations of a small app, or of all that the visitor may see.

    A name that is an id, or begins one, leads to that operation.
    """
    found, fault, status = None, "", 200
    opened, wanted = visitor.opened, Filter()
    id = operations.with_id(opened, asked.name.strip())
    if id is not None:
        return RedirectResponse(Page(request).url(f"/operations/{id}"), 303)
    all_apps = not opened.is_bound
    try:
        wanted = asked.filter(Page(request).zone)
        given = (wanted, PAGE, asked.cursor, asked.order)
        found = paged.page(opened, *given, all_apps=all_apps)
    except SchedulerError as error:
        fault, status = error.on_page, 404 if isinstance(error, NotFound) else 422
    verbs = [verb for verb in MANY if not wanted.states or _takes(verb, wanted)]
    matching = (
        bulk.matching(opened, wanted, all_apps=all_apps) if found and verbs and wanted.states else 0
    )
    is_whole = found is not None and asked.cursor is None and found.next is None
    names = apps.app_names(visitor.whole)
    values = {
        "matching": matching,
        "count": len(found.items) if found and is_whole else matching,
        "orders": [(one, say(f"operations.by_{one}")) for one in OperationOrder],
        "verbs": verbs,
        "most": bulk.MOST,
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


@router.get("/operations.csv")
@router.get("/operations.json")
def export_operations(
    request: Request, visitor: Viewer, asked: Annotated[OperationQuery, Query()]
) -> Response:
    """Return the first thousand runs that match, from that page on, as a file."""
    opened, wanted = visitor.opened, asked.filter(Page(request).zone)
    all_apps = not opened.is_bound
    given = (wanted, LARGEST_PAGE, asked.cursor, asked.order)
    found = paged.page(opened, *given, all_apps=all_apps)
    return file_of(found.items, "runs", request.url.path.rpartition(".")[2], COLUMNS)


@router.post("/operations")
def change_many(request: Request, visitor: Operator) -> Response:
    """Plan or do one of `MANY`, for the chosen runs or for all that match the filters."""
    form, opened = visitor.form, visitor.opened
    verb = form.one("verb")
    if verb not in MANY:
        raise Refused(say("many.unknown", verb=verb))
    change, all_apps = MANY[verb], not opened.is_bound
    asked = OperationQuery(**{name: form.one(name) for name in FIELDS})
    if "sure" in form:
        # Exactly those of the plan.
        chosen = bulk.Selection(ids=tuple(form.all("id")))
        done = change(opened, chosen, all_apps=all_apps)
        return see(request, _list_of(asked, opened), _told(done))
    selection = _selection(verb, asked.filter(Page(request).zone), form.all("id"))
    plan = change(opened, selection, dry_run=True, all_apps=all_apps)
    values = {
        "plan": plan,
        "fields": {name: form.one(name) for name in FIELDS},
        "back": _list_of(asked, opened),
        "app": opened.app_name if opened.is_bound else "",
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
    return see(request, f"/operations/{id}", say(f"operation.done_{verb}"))


def _takes(verb: str, wanted: Filter) -> bool:
    return all(state in TAKES[ManyVerb(verb)] for state in wanted.states)


def _selection(verb: str, wanted: Filter, ids: list[str]) -> bulk.Selection:
    """Return the chosen runs; without any, all that match and are in a state that a verb takes."""
    if ids:
        return bulk.Selection(ids=tuple(ids))
    states = wanted.states or tuple(USUALLY[ManyVerb(verb)])
    return bulk.Selection(**wanted.model_dump(exclude={"states"}), states=states)


def _list_of(asked: OperationQuery, opened: Installation) -> str:
    """Return the list of the same filters, from its first page."""
    fields = {name: getattr(asked, name) for name in FIELDS if getattr(asked, name)}
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
    begun = shown.attempts[0].started_at if shown.attempts else shown.started_at
    instants = (
        ("due", shown.occurrence_at),
        ("recorded", shown.recorded_at),
        ("sent", shown.sent_at),
        ("started", begun),
        ("ended", shown.finished_at),
    )
    return {
        "app": shown.app,
        "shown": shown,
        "is_over": shown.state in ENDED,
        "why": shown.waits or shown.error or shown.reason,
        "known_states": STATES,
        "steps": [_step(one) for one in shown.steps] if isinstance(shown.steps, list) else [],
        "log": operations.log(opened, id).root,
        "result": json.dumps(shown.result, indent=2, ensure_ascii=False, default=str),
        "instants": instants,
        "bars": gantt(shown, page.now, page.zone),
    }


def _step(stored: Any) -> dict[str, Any]:
    """Return a step with each key that the page shows: a broken row may lack some."""
    known = stored if isinstance(stored, dict) else {"name": str(stored)}
    return {key: known.get(key) for key in ("name", "state", "message", "error")}
