"""Pages of actions: the search, one action, and what can be done with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field

from models.errors import InvalidDocument, NotFound, Outdated, Refused, SchedulerError
from models.json_text import read_json
from models.roles import Permission
from models.store.actions.search import Standing
from views import (
    actions,
    apps,
    backfills,
    change_plan,
    changes,
    explanation,
    runs,
    steps,
    templates,
    users,
)
from views.actions import history, search
from views.installation import Installation
from web.dashboard import drawing
from web.dashboard.documents import difference, pretty
from web.dashboard.rendering import ZONES, Page, render, see
from web.dashboard.session import Visitor, changing, is_fragment, viewing
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
Viewer = Annotated[Visitor, viewing()]
Operator = Annotated[Visitor, changing(Permission.OPERATE)]
Editor = Annotated[Visitor, changing(Permission.EDIT)]
ReaderOfEditor = Annotated[Visitor, viewing(Permission.EDIT)]
PAGE = 50
MOST_CHOSEN = 500
NEXT = 10
VERBS = ("run", "pause", "resume", "delete")
# The rules that the form can write; static/form.js knows them by these names.
RHYTHMS = ("minutes", "hour", "day", "weekdays", "week", "month", "own")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# What is said of a document before it is read.
NOTHING = {"faults": (), "meaning": None, "planned": None}
NEW_ACTION = {
    "name": "",
    "when": {"cron_rule": "0 7 * * mon", "timezone": "UTC"},
    "operations": {},
}


class Asked(BaseModel):
    """What the page of an action is asked: why (not) at an instant; the plan of a backfill."""

    at: str = ""
    first: str = Field("", alias="from")
    last: str = Field("", alias="to")


@router.get("/actions")
def list_actions(
    request: Request,
    visitor: Viewer,
    q: str = "",
    owner: str = "",
    standing: str = "",
    cursor: str | None = None,
) -> HTMLResponse:
    """Show a page of the actions that a search finds; htmx asks for the rows alone."""
    asked = Standing(standing) if standing in set(Standing) else None
    found = search.search(visitor.opened, q, owner or None, asked, PAGE, cursor)
    return render(
        request,
        "actions_found.html" if is_fragment(request) else "actions.html",
        {
            "visitor": visitor,
            "found": found,
            "q": q,
            "owner": owner,
            "standing": standing,
            "standings": list(Standing),
            "apps": [one.name for one in apps.list_apps(visitor.whole).root],
            "app": visitor.opened.app_name if visitor.opened.is_bound else "",
            "spark": drawing.spark,
        },
    )


@router.post("/actions")
def change_several(request: Request, visitor: Operator) -> RedirectResponse:
    """Run, pause, resume or delete the chosen actions; a refused one does not stop the others."""
    verb, uids = visitor.form.one("verb"), visitor.form.all("uid")[:MOST_CHOSEN]
    if verb not in VERBS:
        raise Refused(say("change.unknown", verb=verb))
    if verb == "delete" and not visitor.may(Permission.EDIT):
        raise Refused(say("change.not_permitted"))
    refusals = []
    for uid in uids:
        try:
            _change(visitor.opened, uid, verb)
        except (NotFound, Refused) as error:
            refusals.append(str(error))
    told = say(f"change.done_{verb}", count=len(uids) - len(refusals))
    if refusals:
        told += " " + say("change.refused", count=len(refusals), first=refusals[0])
    return see(request, "/actions", told)


def _change(opened: Installation, name: str, verb: str) -> str:
    """Do something with an action; return where to look next. Raises NotFound and Refused."""
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


# The second is the address of a refused document, should somebody go to it again.
@router.get("/apps/{app}/new-action")
@router.get("/apps/{app}/store")
def new_action(request: Request, visitor: ReaderOfEditor, app: str) -> HTMLResponse:
    """Show an empty document to fill in."""
    return _edit(request, visitor, app, None, Draft(pretty(NEW_ACTION)))


@router.get("/apps/{app}/actions/{action}")
def show_action(
    request: Request, visitor: Viewer, action: str, asked: Annotated[Asked, Query()]
) -> HTMLResponse:
    """Show an action, with the answer to "why (not) at …?" and the plan of a backfill if asked."""
    opened = visitor.opened
    app = opened.app_name
    shown = actions.show(opened, action)
    past = history.history_of(opened, action)
    revisions = actions.revisions_of(opened, action).root
    zone = Page(request).zone
    values: dict[str, Any] = {
        "visitor": visitor,
        "app": app,
        "shown": shown,
        "next": actions.next_of(opened, action, NEXT).root,
        "calendar": drawing.calendar(past, f"/operations?app={app}&action={shown.uid}"),
        "durations": drawing.durations(past, zone),
        "document": pretty(shown.document),
        "revisions": [
            (one, difference(before.document if before else {}, one.document))
            for one, before in zip(revisions, [*revisions[1:], None], strict=True)
        ],
        "asked": asked,
        **_answers(opened, action, asked),
    }
    return render(request, "action.html", values)


def _answers(opened: Installation, action: str, asked: Asked) -> dict[str, Any]:
    """Return the explanation and the plan that are asked for, or why there is none."""
    explained, planned, fault = None, None, ""
    try:
        if asked.at:
            explained = explanation.explain(opened, action, asked.at)
        if asked.first and asked.last:
            whole = backfills.Range(action=action, first=asked.first, last=asked.last)
            planned = backfills.plan(opened, whole)
    except SchedulerError as error:
        fault = str(error)
    return {"explained": explained, "planned": planned, "fault": fault}


@router.get("/apps/{app}/actions/{action}/edit")
def edit_action(request: Request, visitor: ReaderOfEditor, app: str, action: str) -> HTMLResponse:
    """Show the document of an action to change it."""
    shown = actions.show(visitor.opened, action)
    document = shown.document if isinstance(shown.document, str) else pretty(shown.document)
    return _edit(request, visitor, app, shown, Draft(document))


@router.post("/apps/{app}/check")
def check_document(request: Request, visitor: Editor, app: str) -> HTMLResponse:
    """Show what a document means and what storing it would do; nothing is stored."""
    return render(request, "meaning.html", _meaning(visitor, app, visitor.form.one("document")))


@router.post("/apps/{app}/store", response_model=None)
def store_document(request: Request, visitor: Editor, app: str) -> HTMLResponse | RedirectResponse:
    """Store a document: as a new action, or as the next revision of the one it was read from."""
    opened, text = visitor.opened, visitor.form.one("document")
    uid, revision = visitor.form.one("uid"), visitor.form.one("revision")
    try:
        document = read_json(text.encode())
        if uid:
            done = changes.put(
                opened, uid, document, int(revision) if revision.isdecimal() else None
            )
        else:
            (done,) = changes.add(opened, [document]).root
    except (InvalidDocument, Outdated, Refused) as error:
        shown = actions.show(opened, uid) if uid else None
        return _edit(request, visitor, app, shown, Draft(text, error, revision))
    told = say(f"edit.{done.change}", name=done.name, revision=done.revision)
    return see(request, f"/apps/{app}/actions/{done.uid}", told)


@router.post("/apps/{app}/actions/{action}/backfill")
def start_backfill(request: Request, visitor: Operator, app: str, action: str) -> RedirectResponse:
    """Run a range of an action's past."""
    form = visitor.form
    only = form.one("only") or None
    asked = backfills.Range(action=action, first=form.one("from"), last=form.one("to"), only=only)
    backfills.start(visitor.opened, asked)
    return see(request, f"/apps/{app}/actions/{action}", say("action.backfill_started"))


@router.post("/apps/{app}/actions/{action}/delete")
def delete_action(request: Request, visitor: Editor, action: str) -> RedirectResponse:
    """Delete an action."""
    _change(visitor.opened, action, "delete")
    return see(request, "/actions", say("change.done_delete", count=1))


@router.post("/apps/{app}/actions/{action}/{verb}")
def change_action(
    request: Request, visitor: Operator, app: str, action: str, verb: str
) -> RedirectResponse:
    """Run, pause or resume an action."""
    if verb == "delete":
        raise NotFound(say("change.unknown", verb=verb))
    path = _change(visitor.opened, action, verb) or f"/apps/{app}/actions/{action}"
    return see(request, path, say(f"change.done_{verb}", count=1))


@dataclass(frozen=True, slots=True)
class Draft:
    """A document as it is written, why it was refused, and the revision that it was read from."""

    text: str
    error: Exception | None = None
    revision: str = ""


def _edit(
    request: Request, visitor: Visitor, app: str, shown: actions.Action | None, draft: Draft
) -> HTMLResponse:
    error = draft.error
    opened = visitor.opened
    values = {
        "visitor": visitor,
        "app": app,
        "shown": shown,
        "text": draft.text,
        "error": error,
        # A change that was made meanwhile is not overwritten by a second try.
        "revision": draft.revision or (shown.revision if shown else ""),
        "is_outdated": isinstance(error, Outdated),
        "has_faults": isinstance(error, InvalidDocument),
        "steps": steps.list_steps(opened).steps,
        "templates": [one.name for one in templates.list_templates(opened).root],
        "groups": [one.name for one in users.list_groups(opened).root],
        "zones": ZONES,
        "examples": _example,
        "rhythms": RHYTHMS,
        "weekdays": WEEKDAYS,
    }
    meaning = _meaning(visitor, app, draft.text) if shown or error else NOTHING
    return render(request, "edit.html", {**meaning, **values}, 422 if error else 200)


def _example(step: str, known: Sequence[str]) -> Any:
    """Return parameters of a step to start from."""
    examples: dict[str, Any] = {
        "refresh": True,
        "publish": {"data": True},
        "send_execsum": True,
        "send_email": {"template": known[0] if known else ""},
        "celery_task": {"task": ""},
        "job": {"url": ""},
    }
    return examples.get(step, {})


def _meaning(visitor: Visitor, app: str, text: str) -> dict[str, Any]:
    """Return what the page says of a document: its faults, or its meaning and what it changes."""
    values: dict[str, Any] = {**NOTHING, "visitor": visitor, "app": app, "text": text}
    try:
        document = read_json(text.encode())
        (meaning,) = changes.check(visitor.opened, [document]).root
        (planned,) = change_plan.plan_changes(visitor.opened, [document]).actions
    except InvalidDocument as error:
        return {**values, "faults": error.problems}
    except Refused as error:
        return {**values, "faults": (error,)}
    return {**values, "meaning": meaning, "planned": planned}
