"""Endpoints of scheduled actions."""

from typing import Annotated

from fastapi import Response

from models.roles import Permission
from services import actions, backfills, changes, explanation, runs, upcoming
from services.actions import search
from services.changes import known_tasks, many
from services.changes.result import Change
from services.installation import Installation
from services.verbs import ACTION
from web.access import in_app
from web.bodies import (
    Body,
    IfMatch,
    IfNoneMatch,
    document,
    etag,
    reads,
    required_tag,
    revision_in,
)
from web.routing import endpoints
from web.verbs import answers, serve

router = endpoints("actions")
Editor = Annotated[Installation, in_app(Permission.EDIT)]


@router.post("/api/actions", status_code=201, openapi_extra=reads(ACTION))
def create_action(opened: Editor, body: Body, response: Response) -> Change:
    """Create an action; 409 if its name is taken."""
    (made,) = changes.add(opened, [document(body)]).root
    response.headers.update(etag(made.revision))
    return made


@answers(router, upcoming.show)
def show_action(opened: Installation, action: str, response: Response) -> upcoming.Action:
    """Show an action, by its name or uid; its ETag is its revision."""
    found = upcoming.show(opened, action)
    response.headers.update(etag(found.revision))
    return found


@answers(router, changes.put)
def put_action(
    opened: Installation,
    action: str,
    body: Body,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    *,
    dry_run: changes.DryRun = False,
) -> Change:
    """Make the document the action's next revision, or create the action of that name.

    An equal document changes nothing.
    """
    expects = revision_in(required_tag(if_match, if_none_match))
    done = changes.put(opened, action, document(body), expects, dry_run=dry_run)
    response.headers.update(etag(done.revision))
    return done


serve(router, actions, upcoming, search, explanation)
serve(router, changes, many, known_tasks, backfills)
serve(router, runs.run, runs.run_all, runs.plan)
