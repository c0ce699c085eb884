"""Endpoints of small apps (tenants): documents, status, grants, data and templates."""

from collections.abc import Collection
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, create_model

from minutebook.grants import KINDS
from models.roles import Permission
from views import apps, templates
from views.apps import changes, data, grants, limits
from views.installation import Installation
from views.templates import summary
from views.view import RequestBody
from web.access import in_app, of_app, of_installation
from web.bodies import (
    JSON_LINES,
    Body,
    ContentType,
    IfMatch,
    IfNoneMatch,
    document,
    documents,
    etag,
    reads,
    reads_model,
    required_tag,
    value_of,
    with_places,
)
from web.downloads import Download
from web.paging import LINKED, Linked
from web.routing import SharedRead, endpoints, heavy
from web.together import answer, json_of

router = endpoints("small apps", "/api")
shared = endpoints("small apps", "/api", SharedRead)
WHAT = "A small app: docs/reference/small-app.md."
APP = reads("SmallAppDocument", WHAT)
APPS = reads("SmallAppDocument", WHAT, many=True, lines=True)
Reader = Annotated[Installation, of_app(Permission.READ)]
Editor = Annotated[Installation, of_app(Permission.EDIT)]
EditorOfAny = Annotated[Installation, in_app(Permission.EDIT)]
Admin = Annotated[Installation, of_installation(Permission.ADMINISTER)]
# Each user or domain takes a fraction of a millisecond to check.
LONGEST = 2**20
Everything = Annotated[bool, Query(description="Grant all that the settings allow first.")]


_GIVEN: Any = (tuple[str, ...] | None, None)
GrantChanges = create_model(
    "GrantChanges",
    __base__=RequestBody,
    __doc__="What a small app may reach, by kind; a list that is left out stays as it is.",
    **dict.fromkeys(KINDS, _GIVEN),
)


# True and "5" are no numbers.
Most = Annotated[int, Field(strict=True, ge=-1, le=2**53)]


class LimitChanges(RequestBody):
    """Limits of a small app: 0 is none, -1 the installation's; one left out stays as it is."""

    actions: Most | None = None
    disk_mb: Most | None = None


@router.get("/apps", responses=LINKED)
def list_apps(opened: Annotated[Installation, in_app(Permission.READ)], asked: Linked) -> apps.Apps:
    """List the small apps that the token may see, by name."""
    return apps.Apps(asked.items(apps.list_apps(opened, asked.limit, asked.cursor)))


@router.post("/apps", status_code=201, openapi_extra=APP)
@heavy
def create_app(opened: EditorOfAny, body: Body) -> changes.AppliedApp:
    """Create a small app; 409 if its name is taken."""
    return changes.create(opened, ("", document(body, LONGEST)))


@router.post("/apps:apply", openapi_extra=APPS)
@heavy
def apply_apps(
    opened: EditorOfAny, body: Body, dry_run: bool = False, content_type: ContentType = None
) -> changes.AppliedApps:
    """Create small apps, or update them to their documents, all or none."""
    read = with_places(documents(body, content_type, LONGEST))
    return changes.apply(opened, read, dry_run=dry_run)


@router.get("/apps/{app}")
def show_app(opened: Reader, app: str, response: Response) -> apps.App:
    """Show a small app with its document; its ETag names the document."""
    found = apps.show(opened, app)
    response.headers.update(etag(found.document_tag))
    return found


@router.put("/apps/{app}", openapi_extra=APP)
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
    read = document(body, LONGEST)
    return changes.put(opened, app, read, expects, dry_run=dry_run)


@router.delete("/apps/{app}")
@heavy
def delete_app(opened: Admin, app: str, force: bool = False) -> changes.DeletedApp:
    """Delete a small app with its actions; 409 if it has active ones, without `force`."""
    return changes.delete(opened, app, is_sure=force)


@shared.get("/apps/{app}/status", response_model=apps.DataStatus)
async def show_status(request: Request, opened: Reader) -> Response:
    """Return the status of a small app's data."""
    return answer(await request.app.state.statuses.get(opened.app_name))


def read_status(opened: Installation, names: Collection[str]) -> dict[str, bytes]:
    """Return the status of each small app for the requests that asked at the same time."""
    return {name: json_of(apps.status(opened, name)) for name in names}


@router.get("/apps/{app}/grants")
def show_grants(opened: Reader, app: str) -> grants.GrantedTo:
    """Return what a small app may reach."""
    return grants.granted(opened, app)


@router.patch("/apps/{app}/grants", openapi_extra=reads_model(GrantChanges))
def change_grants(
    opened: Admin, app: str, body: Body, everything: Everything = False
) -> grants.GrantedTo:
    """Change what a small app may reach."""
    given = value_of(body, GrantChanges).model_dump(exclude_none=True)
    # An empty text removes all of its kind.
    lists = {kind: names or ("",) for kind, names in given.items()}
    return grants.grant(opened, app, lists, all_=everything)


@router.get("/apps/{app}/limits")
def show_limits(opened: Reader, app: str) -> limits.LimitsOf:
    """Return what a small app may use."""
    return limits.limits(opened, app)


@router.patch("/apps/{app}/limits", openapi_extra=reads_model(LimitChanges))
def change_limits(opened: Admin, app: str, body: Body) -> limits.LimitsOf:
    """Change what a small app may use."""
    given = value_of(body, LimitChanges).model_dump(exclude_none=True)
    return limits.limit(opened, app, given)


@router.get(
    "/apps/{app}/data/{domain}",
    response_class=StreamingResponse,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}},
)
def read_data(
    request: Request, opened: Reader, app: str, domain: str, staging: bool = False
) -> StreamingResponse:
    """Return the published rows of a domain, all of one version, as JSON Lines.

    429 or 503 while as many downloads are in progress as may be.
    """
    opens = partial(data.open_lines, opened, app, domain, is_staged=staging)
    return Download(request.app.state.downloads, app, opens, JSON_LINES)


@router.get("/apps/{app}/summary")
@heavy
def preview_summary(opened: Reader) -> summary.SummaryPreview:
    """Render the executive summary of a small app as it would be mailed now; nothing is sent."""
    return summary.preview(opened)


@router.get("/apps/{app}/templates", responses=LINKED)
def list_templates(opened: Reader, asked: Linked) -> templates.Templates:
    """List the mail templates of a small app, by name."""
    page = templates.list_templates(opened, asked.limit, asked.cursor)
    return templates.Templates(asked.items(page))


@router.get("/apps/{app}/templates/{template}/preview")
@heavy
def preview_template(
    opened: Reader,
    template: str,
    user: str | None = None,
) -> templates.TemplatePreview:
    """Render a mail template with the values of a user, or with sample values."""
    return templates.preview(opened, template, user)


@router.post("/apps/{app}/templates/{template}:send-test")
@heavy
def send_test(
    opened: Editor,
    template: str,
    to: Annotated[str, Query(description="One address.")],
    user: str | None = None,
) -> templates.TriedMail:
    """Send a mail template to one address."""
    return templates.send_test(opened, template, to, user)
