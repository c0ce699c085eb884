"""The page of one action, and what can be done with it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from models.errors import NotFound, SchedulerError
from models.roles import Permission
from services import backfills, explanation
from services.actions import Revision, page, stored
from web.dashboard.actions import change
from web.dashboard.documents import difference, notification_targets, pretty
from web.dashboard.drawing.bars import bars
from web.dashboard.drawing.year import drawn_year
from web.dashboard.fields import in_zone
from web.dashboard.rendering import Page, confirm, redirect, render
from web.dashboard.session import Editor, Operator, Viewer, Visitor
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
NEXT = 3
# What a step is about, in its parameters.
ABOUT = ("task", "run", "shell", "url")


class ActionQuery(BaseModel):
    """What a request asks of an action's page: why it ran (or not) at an instant; a backfill plan.

    `before` is the number of a revision: those before it are shown.
    """

    before: int | None = Field(None, ge=1, lt=10**9)
    at: str = ""
    first: str = Field("", alias="from")
    last: str = Field("", alias="to")

    def in_zone(self, zone: str) -> "ActionQuery":
        """Return the same with instants of the viewer's zone."""
        first, last = in_zone(self.first, zone), in_zone(self.last, zone)
        return ActionQuery(at=in_zone(self.at, zone), **{"from": first, "to": last})


@router.get("/apps/{app}/actions/{action}")
def show_action(
    request: Request, visitor: Viewer, action: str, asked: Annotated[ActionQuery, Query()]
) -> HTMLResponse:
    """Show an action, with the answer to "why (not) at …?" and the plan of a backfill if asked."""
    opened = visitor.opened
    zone = Page(request).zone
    found = page.action_page(opened, action, NEXT, zone, asked.before)
    shown = found.shown
    runs = f"/operations?app={opened.app_name}&action={shown.uid}"
    values: dict[str, Any] = {
        "app": opened.app_name,
        "found": found,
        "shown": shown,
        "restorable": _restorable(found),
        "since": page.since_when(found),
        "trouble": page.last_trouble(found.runs),
        "bars": bars(found.runs, zone),
        "figures": page.figures_of(found.runs),
        "year": drawn_year(found.year, runs),
        "steps": _steps(shown.document),
        "targets": notification_targets(_object(shown.document)) if shown.when else [],
        "document": pretty(shown.document),
        **revisions(found.revisions),
        "asked": asked,
        **answers(visitor, str(shown.uid), asked.in_zone(zone)),
    }
    return render(request, "action.html", values)


def _steps(document: Any) -> list[tuple[str, str]]:
    """Return the steps of a document, each with what it is about; none of a broken one."""
    steps = _object(_object(document).get("operations"))
    return [(name, _about(_object(its))) for name, its in steps.items()]


def _about(parameters: Mapping[str, Any]) -> str:
    match next((parameters[key] for key in ABOUT if key in parameters), ""):
        case str(text):
            return text
        case list(words):
            return " ".join(map(str, words))
        case _:
            return ""


def _object(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _restorable(found: page.ActionPage) -> int | None:
    """Return the revision that a quarantined action had before the one that cannot be run."""
    newest = found.shown.revision
    return newest - 1 if found.shown.quarantined and newest is not None and newest > 1 else None


def revisions(found: Sequence[Revision]) -> dict[str, Any]:
    """Return revisions, each with what it changed, and the number before which there are more."""
    pairs = list(zip(found, [*found[1:], None], strict=True))
    shown = pairs[: page.MOST_REVISIONS]
    return {
        "revisions": [
            (one, difference(before.document if before else {}, one.document))
            for one, before in shown
        ],
        "older": shown[-1][0].number if pairs[len(shown) :] else None,
    }


def answers(visitor: Visitor, action: str, asked: ActionQuery) -> dict[str, Any]:
    """Return the explanation and the plan that are asked for, or why there is none.

    A plan is made only for a visitor who may start it.
    """
    opened, explained, planned, fault = visitor.opened, None, None, ""
    try:
        if asked.at:
            explained = explanation.explain(opened, action, asked.at)
        if asked.first and asked.last and visitor.may(Permission.OPERATE):
            planned = backfills.plan(opened, action, asked.first, asked.last)
    except SchedulerError as error:
        fault = error.on_page
    return {"explained": explained, "planned": planned, "fault": fault}


@router.post("/apps/{app}/actions/{action}/backfill")
def start_backfill(request: Request, visitor: Operator, app: str, action: str) -> RedirectResponse:
    """Run a range of an action's past."""
    form, zone = visitor.form, Page(request).zone
    first, last = (in_zone(form.get(name, ""), zone) for name in ("from", "to"))
    backfills.start(visitor.opened, action, first, last)
    return redirect(request, f"/apps/{app}/actions/{action}", say("action.backfill_started"))


@router.post("/apps/{app}/actions/{action}/delete")
def delete_action(request: Request, visitor: Editor, app: str, action: str) -> Response:
    """Delete an action; its page stays, and can create it again."""
    found = stored(visitor.opened, action)
    here = f"/apps/{app}/actions/{found.uid}"
    if "sure" not in visitor.form:
        return confirm(request, say("change.ask_delete", name=found.name), here)
    change(visitor.opened, str(found.uid), "delete")
    return redirect(request, here, say("change.deleted", name=found.name))


@router.post("/apps/{app}/actions/{action}/restore")
def restore_action(request: Request, visitor: Editor, app: str, action: str) -> RedirectResponse:
    """Create a deleted action again, by its last revision."""
    done = page.restore(visitor.opened, action)
    told = say("change.restored", name=done.name)
    return redirect(request, f"/apps/{app}/actions/{done.uid}", told)


@router.post("/apps/{app}/actions/{action}/{verb}")
def change_action(
    request: Request, visitor: Operator, app: str, action: str, verb: str
) -> RedirectResponse:
    """Run, pause or resume an action."""
    if verb == "delete":
        raise NotFound(say("change.unknown", verb=verb))
    here = f"/apps/{app}/actions/{action}"
    path = change(visitor.opened, action, verb) or here
    return redirect(request, path, say(f"change.done_{verb}", count=1))
