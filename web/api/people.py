"""Endpoints of a small app's users, groups and events."""

from typing import Annotated

from fastapi import Query

from services import users
from services.installation import Installation
from services.users import events
from services.verbs import DocumentKind
from web.bodies import Body, document, reads
from web.routing import endpoints
from web.verbs import answers, serve

router = endpoints("people")
USER = DocumentKind("UserDocument", "A user: docs/reference/small-app.md.", longest=2**20)


@answers(router, users.import_rows, openapi_extra=reads(USER, many=True))
def import_users(
    opened: Installation,
    body: Body,
    events: Annotated[bool, Query(description="Raise the events of new instants.")] = False,
) -> users.ImportedUsers:
    """Create or update users, all or none."""
    read = document(body, USER.longest)
    rows = read if isinstance(read, list) else [read]
    return users.import_rows(opened, rows, raises_events=events)


serve(router, users, events)
