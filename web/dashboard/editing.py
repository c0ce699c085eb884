"""The form of an action: a document, its meaning, and how it differs from what is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from models.errors import InvalidDocument, Outdated, Refused, SchedulerError
from models.json_text import read_json
from models.notices import Target
from models.roles import Permission
from services import actions, apps, changes, channels, steps
from services.actions import page
from services.changes.known_tasks import known_tasks
from services.installation import Installation
from web.dashboard.documents import (
    CHOICES,
    FIELDS_OF_PLUG_INS,
    FIRST_STEPS,
    HOOK_KINDS,
    difference,
    notification_targets,
    pretty,
)
from web.dashboard.rendering import Page, redirect, render
from web.dashboard.session import Editor, Form, Visitor, viewing
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
ReaderOfEditor = Annotated[Visitor, viewing(Permission.EDIT)]
# What the page shows of a document that is not read yet.
NOTHING = {"faults": (), "meaning": None, "changed": (), "told": ()}


@dataclass(frozen=True, slots=True)
class Draft:
    """A document as it is written, why it was refused, and the revision that it was read from."""

    text: str
    error: SchedulerError | None = None
    revision: str = ""
    # The uid of the action; empty for a new one.
    uid: str = ""
    # The number of the older revision whose document it is.
    restored: int | None = None

    @classmethod
    def of(cls, form: Form) -> Self:
        """Return the draft that a form holds."""
        text, revision, uid = (form.get(name, "") for name in ("document", "revision", "uid"))
        return cls(text, None, revision, uid)


# The second is the address of a refused document, in case the browser returns to it.
@router.get("/apps/{app}/new-action")
@router.get("/apps/{app}/store")
def new_action(request: Request, visitor: ReaderOfEditor, app: str) -> HTMLResponse:
    """Show an empty document to fill in; it has no rule, so that none is saved unseen."""
    when = {"timezone": Page(request).chosen_zone or visitor.opened.small_app.zone}
    empty = {"name": "", "when": when, "operations": {}}
    return _edit(request, visitor, app, Draft(pretty(empty)))


@router.get("/apps/{app}/actions/{action}/edit")
def edit_action(
    request: Request,
    visitor: ReaderOfEditor,
    app: str,
    action: str,
    revision: Annotated[int | None, Query(ge=1, lt=10**9)] = None,
) -> HTMLResponse:
    """Show the document of an action to change it, or that of an older revision to restore it."""
    shown = actions.stored(visitor.opened, action)
    document = shown.document
    if revision is not None:
        document = page.revision_of(visitor.opened, str(shown.uid), revision)
    draft = Draft(pretty(document), uid=str(shown.uid), restored=revision)
    return _edit(request, visitor, app, draft, shown)


@router.post("/apps/{app}/check")
def check_document(request: Request, visitor: Editor, app: str) -> HTMLResponse:
    """Show what a document means; nothing is stored."""
    return render(request, "meaning.html", _meaning(visitor, app, Draft.of(visitor.form)))


@router.post("/apps/{app}/try-hook")
def try_hook(request: Request, visitor: Editor) -> HTMLResponse:
    """Send a test to whom a hook of the document would tell."""
    kind, to, action = (visitor.form.get(name, "") for name in ("kind", "to", "action"))
    if kind not in HOOK_KINDS:
        raise Refused(say("hook.unknown", kind=kind))
    try:
        done = channels.try_hook(visitor.opened, action, Target(kind, to))
    except Refused as error:
        return render(request, "tried.html", {"error": error.on_page, "to": ""})
    return render(request, "tried.html", {"error": "", "to": done.to})


@router.post("/apps/{app}/store", response_model=None)
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
    return redirect(request, f"/apps/{app}/actions/{done.uid}", told)


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
    faults = draft.error.problems if isinstance(draft.error, InvalidDocument) else ()
    values = {
        **CHOICES,
        **NOTHING,
        **_known_names(opened),
        "app": app,
        "shown": shown,
        "draft": draft,
        "text": draft.text,
        # A change that was made meanwhile is not overwritten by a second try.
        "revision": draft.revision or (shown.revision if shown else ""),
        "is_outdated": isinstance(draft.error, Outdated),
        "faults": faults,
    }
    return render(request, "edit.html", values, 422 if draft.error else 200)


def _known_names(opened: Installation) -> dict[str, Any]:
    """Return what documents of the small app may name, for the fields to offer."""
    author = opened.author
    names, sent = apps.names(opened), known_tasks(opened, author)
    found = steps.list_steps(opened).steps
    channels = list(opened.settings.notify) if author.trust.is_trusted else []
    return {
        "steps": sorted(found, key=lambda one: FIRST_STEPS.get(one.name, len(FIRST_STEPS))),
        "examples": {one.name: _example(one, names) for one in found},
        "more_names": {
            kind: names[kind] for own in FIELDS_OF_PLUG_INS.values() for _, _, kind in own
        },
        "groups": names["groups"],
        "actions": names["actions"],
        "tasks": sent.tasks,
        "queues": sent.queues,
        "calendars": sorted(author.calendars),
        "channels": sorted(channels),
    }


def _example(step: steps.Step, names: Mapping[str, Sequence[str]]) -> Any:
    """Return what a chosen step begins with: its example, with names that there are."""
    fields = FIELDS_OF_PLUG_INS.get(step.name, ())
    known = {key: names[kind][0] for key, _, kind in fields if names.get(kind)}
    return {**step.example, **known} if known else step.example


def _meaning(visitor: Visitor, app: str, draft: Draft) -> dict[str, Any]:
    """Return what the page says of a document: its faults, or its meaning and what differs."""
    values: dict[str, Any] = {**NOTHING, "app": app, "text": draft.text}
    opened = visitor.opened
    shown = actions.stored(opened, draft.uid) if draft.uid else None
    try:
        document = read_json(draft.text.encode())
        if draft.uid:
            found = changes.put(opened, draft.uid, document, None, dry_run=True)
        else:
            (found,) = changes.add(opened, [document], details=True, dry_run=True).root
    except InvalidDocument as error:
        return {**values, "faults": error.problems}
    except Refused as error:
        return {**values, "faults": [error]}
    changed = difference(shown.document, document) if shown else []
    return {**values, "meaning": found, "changed": changed, "told": notification_targets(document)}
