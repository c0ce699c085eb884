"""Endpoints of small apps (tenants): documents, status, grants and limits."""

from collections.abc import Collection
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import Field, create_model

from models.roles import Permission
from views import apps
from views.apps import changes, grants, limits
from views.apps.granted import KINDS
from views.installation import Installation
from views.verbs import SMALL_APP
from views.view import RequestBody
from web.access import of_app
from web.bodies import (
    Body,
    IfMatch,
    IfNoneMatch,
    document,
    etag,
    reads,
    reads_model,
    required_tag,
    value_of,
)
from web.routing import SharedRead, endpoints, heavy
from web.together import answer, json_of
from web.verbs import answers, serve

router = endpoints("small apps")
shared = endpoints("small apps", kind=SharedRead)
Reader = Annotated[Installation, of_app(Permission.READ)]
Editor = Annotated[Installation, of_app(Permission.EDIT)]
Everything = Annotated[bool, Query(description="Grant all that the settings allow first.")]


def _given(text: str) -> Any:
    return (tuple[str, ...] | None, Field(None, description=text))


GrantChanges = create_model(
    "GrantChanges",
    __base__=RequestBody,
    __doc__="What a small app may reach, by kind; a list that is left out stays as it is.",
    **{kind: _given(text) for kind, text in KINDS.items()},
)


# True and "5" are no numbers.
Most = Annotated[int, Field(strict=True, ge=-1, le=2**53)]


class LimitChanges(RequestBody):
    """Limits of a small app: 0 is none, -1 the installation's; one left out stays as it is."""

    actions: Most | None = Field(None, description="How many actions it may have.")
    disk_mb: Most | None = Field(None, description="How much disk its snapshots may take, in MiB.")


@answers(router, changes.create)
def create_app(opened: Installation, body: Body) -> changes.AppliedApp:
    """Create a small app; 409 if its name is taken."""
    return changes.create(opened, ("", document(body, SMALL_APP.longest)))


@answers(router, apps.show)
def show_app(opened: Installation, app: str, response: Response) -> apps.App:
    """Show a small app with its document; its ETag names the document."""
    found = apps.show(opened, app)
    response.headers.update(etag(found.document_tag))
    return found


@router.put("/api/apps/{app}", openapi_extra=reads(SMALL_APP))
@heavy
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


@shared.get("/api/apps/{app}/status", response_model=apps.DataStatus)
async def show_status(request: Request, opened: Reader) -> Response:
    """Return the status of a small app's data."""
    return answer(await request.app.state.statuses.get(opened.app_name))


def read_status(opened: Installation, names: Collection[str]) -> dict[str, bytes]:
    """Return the status of each small app for the requests that asked at the same time."""
    return {name: json_of(apps.status(opened, name)) for name in names}


@answers(router, grants.grant, openapi_extra=reads_model(GrantChanges))
def change_grants(
    opened: Installation, app: str, body: Body, everything: Everything = False
) -> grants.GrantedTo:
    """Change what a small app may reach."""
    given = value_of(body, GrantChanges).model_dump(exclude_none=True)
    # An empty text removes all of its kind.
    lists = {kind: names or ("",) for kind, names in given.items()}
    return grants.grant(opened, app, lists, all_=everything)


@answers(router, limits.limit, openapi_extra=reads_model(LimitChanges))
def change_limits(opened: Installation, app: str, body: Body) -> limits.LimitsOf:
    """Change what a small app may use."""
    given = value_of(body, LimitChanges).model_dump(exclude_none=True)
    return limits.limit(opened, app, given)


serve(router, apps, changes, grants, limits)
