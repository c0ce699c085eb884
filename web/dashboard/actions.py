"""The search for actions, and what can be done with several of them."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from models.errors import NotFound, Refused
from models.roles import Permission
from models.store.actions.search import ActionFilter, Standing
from services import apps, changes, runs
from services.actions import search
from services.changes import many
from services.changes.result import Changes
from services.installation import Installation
from services.lookup import refusing
from services.runs import RanAll, RequestedRun
from services.view import PAGE
from web.dashboard.fields import fields_of
from web.dashboard.rendering import confirm, redirect, render
from web.dashboard.session import Operator, Viewer, Visitor, is_fragment, page_asked
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
MOST_CHOSEN = 500
# The script in the browser names as many.
MOST_NAMED = 20
VERBS: Mapping[str, Callable[..., Changes | RanAll]] = {
    "run": runs.run_all,
    "pause": many.pause,
    "resume": many.resume,
    "delete": many.delete,
}
# The status of the actions that a change of all concerns; the others have it already.
STANDINGS = {
    "run": {Standing.ACTIVE},
    "pause": {Standing.ACTIVE, Standing.QUARANTINED},
    "resume": {Standing.PAUSED},
}


class ListQuery(ActionFilter):
    """The fields of the form above the list, and the place of its page."""

    cursor: str | None = None


Asked = Annotated[ListQuery, Query()]


@router.get("/actions")
def list_actions(request: Request, visitor: Viewer, asked: Asked) -> HTMLResponse:
    """Show a page of the actions that a search finds; htmx asks only for the rows."""
    opened = visitor.opened
    found = search.search(opened, asked, PAGE, asked.cursor)
    is_whole = asked.cursor is None and found.next is None
    count = len(found.items) if is_whole else search.count(opened, asked, MOST_CHOSEN + 1)
    values = {
        "found": found,
        "asked": asked,
        "given": fields_of(asked),
        "standings": list(Standing),
        "count": count,
        "most": MOST_CHOSEN,
        "apps": apps.app_names(visitor.whole),
        "app": opened.app_name if opened.is_bound else "",
    }
    return render(request, "actions_found.html" if is_fragment(request) else "actions.html", values)


@router.post("/actions")
def change_several(request: Request, visitor: Operator, asked: Asked) -> Response:
    """Plan or do one of `VERBS`, for the selected actions or for all that match the filter."""
    opened, form = visitor.opened, visitor.form
    verb, is_sure = form.get("verb", ""), "sure" in form
    _check(visitor, verb)
    uids = form.getlist("uid")[:MOST_CHOSEN]
    # The plan of all names each: these come back with the answer.
    is_of_all = "all" in form and not is_sure
    if not uids:
        raise Refused(say("many.none"))
    with refusing("uid", ", ".join(uids)):
        wanted = asked if is_of_all else ActionFilter(uid=uids)
    if is_of_all or (verb == "delete" and not is_sure):
        return _ask(request, visitor, wanted, verb)
    made: Changes | RanAll = VERBS[verb](opened, wanted, all_apps=not opened.is_bound)
    told = say(f"change.done_{verb}", count=sum(map(_is_done, made.root)))
    if made.errors:
        told += " " + say("change.refused", count=len(made.errors), first=made.errors[0])
    # The list as it was searched.
    back = page_asked(request)
    if back.partition("?")[0] != "/actions":
        back = "/actions"
    return redirect(request, back, told)


def _is_done(one: Any) -> bool:
    return isinstance(one, RequestedRun) or getattr(one, "change", "unchanged") != "unchanged"


def _check(visitor: Visitor, verb: str) -> None:
    """Raise Refused for a change that does not exist, or that the visitor may not make."""
    if verb not in VERBS:
        raise Refused(say("change.unknown", verb=verb))
    if verb == "delete" and not visitor.may(Permission.EDIT):
        raise Refused(say("change.not_permitted"))


def _ask(request: Request, visitor: Visitor, asked: ActionFilter, verb: str) -> Response:
    """Return the plan of a change of all actions that match, and how many it leaves out."""
    found = search.search(visitor.opened, asked, MOST_CHOSEN)
    takes = STANDINGS.get(verb, frozenset(Standing))
    chosen = [one for one in found.items if one.standing in takes]
    names = [one.name for one in chosen[:MOST_NAMED]]
    if chosen[MOST_NAMED:]:
        names.append(say("change.ask_more", count=len(chosen) - MOST_NAMED))
    if len(chosen) < len(found.items):
        names.append(say("many.actions_out", count=len(found.items) - len(chosen)))
    if found.next:
        names.append(say("many.more", count=len(found.items)))
    question = say(f"many.{verb}_asks", count=len(chosen))
    fields = [] if asked.uid else [("uid", str(one.uid)) for one in chosen]
    return confirm(request, question, page_asked(request), names, fields)


def change(opened: Installation, name: str, verb: str) -> str:
    """Change or run an action; return the page to show next. Raises NotFound and Refused."""
    match verb:
        case "run":
            return f"/operations/{runs.run(opened, name).id}"
        case "pause":
            changes.pause(opened, name)
        case "resume":
            changes.resume(opened, name)
        case "delete":
            changes.delete(opened, name)
            return "/actions"
        case _:
            raise NotFound(say("change.unknown", verb=verb))
    return ""
