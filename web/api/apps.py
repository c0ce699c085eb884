"""Endpoints of small apps (tenants): documents, status and trust."""

from typing import Annotated

from fastapi import Response

from models.roles import Permission
from services import apps
from services.apps import changes, trust
from services.installation import Installation
from services.verbs import SMALL_APP
from web.access import of_app
from web.bodies import (
    Body,
    IfMatch,
    IfNoneMatch,
    document,
    etag,
    reads,
    required_tag,
)
from web.routing import endpoints
from web.verbs import answers, serve

router = endpoints("small apps")
Editor = Annotated[Installation, of_app(Permission.EDIT)]


@answers(router, changes.create)
def create_app(opened: Installation, body: Body) -> changes.AppliedApp:
    """Create a small app; 409 if its name is taken."""
    return changes.create(opened, ("", document(body, SMALL_APP.longest)))


@answers(router, apps.show, response_model=apps.app_view())
def show_app(opened: Installation, app: str, response: Response) -> apps.App:
    """Show a small app with its document; its ETag names the document."""
    found = apps.show(opened, app)
    response.headers.update(etag(found.document_tag))
    return found


@router.put("/api/apps/{app}", openapi_extra=reads(SMALL_APP))
def put_app(
    opened: Editor,
    app: str,
    body: Body,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    dry_run: bool = False,
) -> changes.AppliedApp:
    """Store a small app's document; only a token of the installation may create a new one."""
    expects = required_tag(if_match, if_none_match)
    read = document(body, SMALL_APP.longest)
    return changes.put(opened, app, read, expects, dry_run=dry_run)


serve(router, apps, changes, trust)
