"""The form of an action: a document, its meaning, and what storing it would do."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self, get_args

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from models.action.policy import CatchUp, Overlap
from models.errors import InvalidDocument, Outdated, Refused, SchedulerError
from models.events import ENDS, EVENTS
from models.json_text import read_json
from models.roles import Permission
from models.turns import HIGHEST_PRIORITY, LOWEST_PRIORITY
from views import actions, apps, changes, steps
from views.changes.plan import preview
from web.dashboard.documents import pretty
from web.dashboard.rendering import ZONES, render, see
from web.dashboard.session import Editor, Form, Visitor, viewing
from web.dashboard.texts import say
from web.routing import ByTurns, heavy

router = APIRouter(include_in_schema=False, route_class=ByTurns)
ReaderOfEditor = Annotated[Visitor, viewing(Permission.EDIT)]
# The rules that the form can write; static/form.js knows them by these names.
RHYTHMS = (
    *("minutes", "hours", "hour", "day", "weekdays", "week", "weeks", "nth", "month"),
    *("event", "end", "own"),
)
# Which weekday of a month, as a cron rule writes it after #.
NTHS = ("1", "2", "3", "4", "5", "L")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# The fields of policies: the place in the document, what it holds, and its choices; of a number,
# the least and the most.
POLICIES = (
    ("policy.overlap", "text", get_args(Overlap)),
    ("policy.catch_up", "text", get_args(CatchUp)),
    ("policy.look_back", "text", ()),
    ("policy.time_limit", "text", ()),
    ("policy.expected", "text", ()),
    ("policy.retry.max_attempts", "number", (1, 100)),
    ("policy.retry.backoff", "list", ()),
    ("policy.priority", "number", (LOWEST_PRIORITY, HIGHEST_PRIORITY)),
    ("hooks.on_success", "mail", ()),
    ("hooks.on_failure", "mail", ()),
    ("hooks.on_missed", "mail", ()),
    ("hooks.alert_after", "number", (1, 1_000)),
)
# What the page shows of a document that is not read yet.
NOTHING = {"faults": (), "meaning": None, "planned": None}


@dataclass(frozen=True, slots=True)
class Draft:
    """A document as it is written, why it was refused, and the revision that it was read from."""

    text: str
    error: SchedulerError | None = None
    revision: str = ""
    # The uid of the action; empty for a new one.
    uid: str = ""
    # Whether it comes from another session, and is not saved yet.
    is_kept: bool = False

    @classmethod
    def of(cls, form: Form, *, is_kept: bool = False) -> Self:
        """Return the draft that a form holds."""
        text, revision, uid = (form.one(name) for name in ("document", "revision", "uid"))
        return cls(text, None, revision, uid, is_kept)


# The second and third are addresses of a draft, in case the browser returns to them.
@router.get("/apps/{app}/new-action")
@router.get("/apps/{app}/store")
@router.get("/apps/{app}/draft")
def new_action(request: Request, visitor: ReaderOfEditor, app: str) -> HTMLResponse:
    """Show an empty document to fill in."""
    when = {"cron_rule": "0 7 * * mon", "timezone": visitor.opened.small_app.zone}
    empty = {"name": "", "when": when, "operations": {}}
    return _edit(request, visitor, app, Draft(pretty(empty)))


@router.get("/apps/{app}/actions/{action}/edit")
def edit_action(request: Request, visitor: ReaderOfEditor, app: str, action: str) -> HTMLResponse:
    """Show the document of an action to change it."""
    shown = actions.stored(visitor.opened, action)
    return _edit(request, visitor, app, Draft(pretty(shown.document), uid=str(shown.uid)), shown)


@router.post("/apps/{app}/draft")
@heavy
def continue_draft(request: Request, visitor: Editor, app: str) -> HTMLResponse:
    """Show a draft that an ended session left."""
    return _edit(request, visitor, app, Draft.of(visitor.form, is_kept=True))


@router.post("/apps/{app}/check")
@heavy
def check_document(request: Request, visitor: Editor, app: str) -> HTMLResponse:
    """Show what a document means and what storing it would do; nothing is stored."""
    return render(request, "meaning.html", _meaning(visitor, app, Draft.of(visitor.form)))


@router.post("/apps/{app}/store", response_model=None)
@heavy
def store_document(request: Request, visitor: Editor, app: str) -> HTMLResponse | RedirectResponse:
    """Store a document: as a new action, or as the next revision of the one it was read from."""
    draft = Draft.of(visitor.form)
    try:
        document = read_json(draft.text.encode())
        if draft.uid:
            read = int(draft.revision) if draft.revision.isdecimal() else None
            done = changes.put(visitor.opened, draft.uid, document, read)
        else:
            (done,) = changes.add(visitor.opened, [document]).root
    except (InvalidDocument, Outdated, Refused) as error:
        return _edit(request, visitor, app, replace(draft, error=error))
    told = say(f"edit.{done.change}", name=done.name, revision=done.revision)
    return see(request, f"/apps/{app}/actions/{done.uid}", told)


def _edit(
    request: Request,
    visitor: Visitor,
    app: str,
    draft: Draft,
    shown: actions.StoredAction | None = None,
) -> HTMLResponse:
    """Return the form; `shown` is the action as it is now, if it was read already."""
    opened = visitor.opened
    if shown is None and draft.uid:
        shown = actions.stored(opened, draft.uid)
    names = apps.names(opened)
    values = {
        "app": app,
        "shown": shown,
        "draft": draft,
        "text": draft.text,
        # A change that was made meanwhile is not overwritten by a second try.
        "revision": draft.revision or (shown.revision if shown else ""),
        "is_outdated": isinstance(draft.error, Outdated),
        "has_faults": isinstance(draft.error, InvalidDocument),
        "steps": steps.list_steps(opened).steps,
        "template": next(iter(names.templates), ""),
        "groups": names.groups,
        "zones": ZONES,
        "rhythms": RHYTHMS,
        "weekdays": WEEKDAYS,
        "nths": NTHS,
        "events": EVENTS,
        "ends": ENDS,
        "actions": names.actions,
        "policies": POLICIES,
    }
    meaning = _meaning(visitor, app, draft) if draft.uid or draft.error else NOTHING
    return render(request, "edit.html", {**meaning, **values}, 422 if draft.error else 200)


def _meaning(visitor: Visitor, app: str, draft: Draft) -> dict[str, Any]:
    """Return what the page says of a document: its faults, or its meaning and what it changes."""
    values: dict[str, Any] = {**NOTHING, "app": app, "text": draft.text}
    try:
        document = read_json(draft.text.encode())
        known = changes.author_now(visitor.opened)
        (meaning,) = changes.check(visitor.opened, [document], known).root
        planned = preview(visitor.opened, draft.uid or None, document, known)
    except InvalidDocument as error:
        return {**values, "faults": error.problems}
    except Refused as error:
        return {**values, "faults": (error,)}
    return {**values, "meaning": meaning, "planned": planned}
