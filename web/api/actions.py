"""Endpoints of scheduled actions."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import Depends, Header, Query, Response

from models.roles import Permission
from models.store.actions.search import Standing
from views import actions, backfills, changes, explanation, runs
from views.actions import history, search
from views.changes import plan
from views.installation import Installation
from web.access import in_app
from web.bodies import (
    Body,
    ContentType,
    IfMatch,
    IfNoneMatch,
    document,
    documents,
    etag,
    expected_tag,
    reads,
    required_tag,
    revision_in,
)
from web.paging import LINKED, PAGE, Cursor, Limit, Linked
from web.routing import endpoints, heavy

router = endpoints("actions", "/api")
WHAT = "A scheduled action: docs/reference/action.md."
ACTION = reads("ActionDocument", WHAT)
ACTIONS = reads("ActionDocument", WHAT, many=True, lines=True)
Reader = Annotated[Installation, in_app(Permission.READ)]
Operator = Annotated[Installation, in_app(Permission.OPERATE)]
Editor = Annotated[Installation, in_app(Permission.EDIT)]
Key = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="Requests with the same key run the action once.",
    ),
]
Owner = Annotated[str, Query(description="The owning application or person.")]
Details = Annotated[bool, Query(description="Include the next occurrences of each.")]
Prune = Annotated[
    str | None,
    Query(
        min_length=1,
        description="An owner; its actions that no document names are deleted.",
    ),
]
Notify = Annotated[
    bool | None,
    Query(description="Whether `publish` mails about new data; without it the action decides."),
]


def _range(
    action: str,
    first: Annotated[str, Query(alias="from", description="First instant of the range.")],
    last: Annotated[str, Query(alias="to", description="Last instant of the range.")],
    only: Annotated[
        Literal["missing", "failed"] | None, Query(description="Only these; both without it.")
    ] = None,
    pace: Annotated[str | None, Query(description="Most operations a minute: `30/min`.")] = None,
) -> backfills.Range:
    return backfills.Range(action=action, first=first, last=last, only=only, pace=pace)


Range = Annotated[backfills.Range, Depends(_range)]


@router.get("/actions", responses=LINKED)
def list_actions(
    opened: Reader,
    asked: Linked,
    owner: str | None = None,
    unhealthy: bool = False,
    all_apps: bool = False,
) -> actions.Actions:
    """List the actions of a small app, or of all, with their status, by name."""
    page = search.list_actions(
        opened, asked.limit, asked.cursor, owner=owner, unhealthy=unhealthy, all_apps=all_apps
    )
    return actions.Actions(asked.items(page))


@router.delete("/actions")
@heavy
def delete_actions(opened: Editor, owner: Owner) -> changes.DeletedActions:
    """Delete all actions of an owner; their history stays."""
    return changes.delete_owned(opened, owner)


@router.get("/actions:documents", responses=LINKED)
def list_documents(
    opened: Reader, asked: Linked, owner: str | None = None
) -> actions.StoredActions:
    """List the actions of a small app with their documents, by name."""
    page = search.list_documents(opened, asked.limit, asked.cursor, owner=owner)
    return actions.StoredActions(asked.items(page))


@router.get("/actions:search")
def search_actions(
    opened: Reader,
    words: Annotated[str, Query(description="Each is in the name or in the owner.")] = "",
    owner: str | None = None,
    standing: Standing | None = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> search.FoundActions:
    """Return a page of the actions that a search finds, by name; of all apps without `app`."""
    return search.search(opened, words, owner, standing, limit, cursor)


@router.post("/actions", status_code=201, openapi_extra=ACTION)
@heavy
def create_action(opened: Editor, body: Body, response: Response) -> changes.Changed:
    """Create an action; 409 if its name is taken."""
    (made,) = changes.add(opened, [document(body)]).root
    response.headers.update(etag(made.revision))
    return made


@router.post("/actions:validate", openapi_extra=ACTIONS)
@heavy
def validate_actions(
    opened: Editor, body: Body, content_type: ContentType = None
) -> changes.Checked:
    """Check documents and return their meaning; nothing is stored."""
    return changes.check(opened, documents(body, content_type))


@router.post("/actions:preview", openapi_extra=ACTIONS)
@heavy
def preview_actions(
    opened: Editor, body: Body, prune: Prune = None, content_type: ContentType = None
) -> plan.ChangePlan:
    """Return what applying documents would do now; nothing is stored."""
    return plan.plan_changes(opened, documents(body, content_type), prune)


@router.post("/actions:apply", openapi_extra=ACTIONS)
@heavy
def apply_actions(
    opened: Editor,
    body: Body,
    details: Details = False,
    prune: Prune = None,
    content_type: ContentType = None,
) -> changes.Changes:
    """Create or change actions to their documents, all or none."""
    return changes.apply(opened, documents(body, content_type), details=details, prune=prune)


@router.post("/actions:add", openapi_extra=ACTIONS, status_code=201)
@heavy
def add_actions(
    opened: Editor, body: Body, details: Details = False, content_type: ContentType = None
) -> changes.Changes:
    """Create actions, all or none; 409 if a name is taken."""
    return changes.add(opened, documents(body, content_type), details=details)


@router.post("/actions:pause")
@heavy
def pause_actions(opened: Operator, owner: Owner) -> changes.SwitchedAll:
    """Pause all actions of an owner; a refused one does not stop the others."""
    return changes.pause_all(opened, owner)


@router.post("/actions:resume")
@heavy
def resume_actions(opened: Operator, owner: Owner) -> changes.SwitchedAll:
    """Resume all actions of an owner; a refused one does not stop the others."""
    return changes.resume_all(opened, owner)


@router.post("/actions:run", status_code=202)
def run_actions(opened: Operator) -> runs.RanAll:
    """Run every active action of a small app, except those on events."""
    return runs.run_all(opened)


@router.get("/actions/{action}")
def show_action(opened: Reader, action: str, response: Response) -> actions.Action:
    """Show an action, by its name or uid; its ETag is its revision."""
    found = actions.show(opened, action)
    response.headers.update(etag(found.revision))
    return found


@router.put("/actions/{action}", openapi_extra=ACTION)
@heavy
def put_action(
    opened: Editor,
    action: str,
    body: Body,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> changes.Changed:
    """Make the document the action's next revision, or create the action of that name.

    An equal document changes nothing.
    """
    expects = revision_in(required_tag(if_match, if_none_match))
    done = changes.put(opened, action, document(body), expects)
    response.headers.update(etag(done.revision))
    return done


@router.delete("/actions/{action}")
@heavy
def delete_action(opened: Editor, action: str, if_match: IfMatch = None) -> changes.DeletedAction:
    """Delete an action; its history stays."""
    return changes.delete(opened, action, revision_in(expected_tag(if_match)))


@router.get("/actions/{action}/next")
@heavy
def next_occurrences(
    opened: Reader, action: str, count: Annotated[int, Query(ge=1, le=1000)] = 5
) -> actions.Occurrences:
    """Return the next occurrences of an action, in its zone and in UTC."""
    return actions.next_of(opened, action, count)


@router.get("/actions/{action}/explain")
@heavy
def explain_action(
    opened: Reader, action: str, at: str, user: str | None = None
) -> explanation.Explanation:
    """Explain why an action ran, or did not run, at an instant."""
    return explanation.explain(opened, action, at, user)


@router.get("/actions/{action}/history")
@heavy
def show_history(opened: Reader, action: str) -> history.ActionHistory:
    """Return what an action did in a year, day by day, and how long its last runs took."""
    return history.history_of(opened, action)


@router.get("/actions/{action}/revisions", responses=LINKED)
def list_revisions(opened: Reader, action: str, asked: Linked) -> actions.Revisions:
    """Return the revisions of an action, the newest first."""
    page = actions.revisions_of(opened, action, asked.limit, asked.cursor)
    return actions.Revisions(asked.items(page))


@router.post("/actions/{action}:run", status_code=202)
def run_action(
    opened: Operator,
    action: str,
    user: str | None = None,
    notify: Notify = None,
    idempotency_key: Key = None,
) -> runs.Ran:
    """Run an action now; its operation shows how it goes."""
    return runs.run(opened, action, user, idempotency_key, notify)


@router.post("/actions/{action}:plan-run")
def plan_run(
    opened: Operator, action: str, user: str | None = None, notify: Notify = None
) -> runs.RunPlan:
    """Return what running an action now would do."""
    return runs.plan(opened, action, user, notify)


@router.post("/actions/{action}:preview", openapi_extra=ACTION)
@heavy
def preview_action(opened: Editor, action: str, body: Body) -> plan.ChangePlan:
    """Return what making the document the action's next revision would do; nothing is stored."""
    return plan.plan_put(opened, action, document(body))


@router.post("/actions/{action}:rename")
@heavy
def rename_action(
    opened: Editor,
    action: str,
    to: Annotated[str, Query(description="The new name.")],
    if_match: IfMatch = None,
) -> changes.Renamed:
    """Give an action another name; its uid and its history stay."""
    return changes.rename(opened, action, to, revision_in(expected_tag(if_match)))


@router.post("/actions/{action}:pause")
def pause_action(opened: Operator, action: str, if_match: IfMatch = None) -> changes.Switched:
    """Pause an action."""
    return changes.pause(opened, action, revision_in(expected_tag(if_match)))


@router.post("/actions/{action}:resume")
def resume_action(opened: Operator, action: str, if_match: IfMatch = None) -> changes.Switched:
    """Resume an action."""
    return changes.resume(opened, action, revision_in(expected_tag(if_match)))


@router.post("/actions/{action}:plan-backfill")
@heavy
def plan_backfill(asked: Range, opened: Operator) -> backfills.BackfillPlan:
    """Return what a backfill would do."""
    return backfills.plan(opened, asked)


@router.post("/actions/{action}:backfill", status_code=202)
@heavy
def start_backfill(asked: Range, opened: Operator) -> backfills.StartedBackfill:
    """Run a range of an action's past."""
    return backfills.start(opened, asked)


@router.post("/actions/{action}:cancel-backfill")
def cancel_backfills(opened: Operator, action: str) -> backfills.CancelledBackfills:
    """Stop an action's active backfills."""
    return backfills.cancel(opened, action)


@router.get("/backfills")
def list_backfills(
    opened: Reader, action: str, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> backfills.Backfills:
    """Return the backfills of an action, the newest first."""
    return backfills.list_backfills(opened, action, limit)


@router.get("/backfills/{id}")
def show_backfill(opened: Reader, id: UUID) -> backfills.StartedBackfill:
    """Show a backfill, with the number of its operations in each state."""
    return backfills.show(opened, id)
