"""Which operations a list shows, and a change of many concerns: the same filters for both."""

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.operation import Cause, OperationState
from models.store.operations.pages import OperationFilter
from models.store.scope import Scope
from views.finding import find, past_instant_of, scope_of, wrong_cursor
from views.installation import Installation
from views.view import RequestBody

MOST_WORDS = 10


class Filter(RequestBody):
    """Which operations; without a value, all."""

    action: str | None = Field(None, description="Of this action: its name or uid.")
    words: str = Field("", description="Each is in the name of the action.")
    states: tuple[OperationState, ...] = Field((), description="In one of these states.")
    causes: tuple[Cause, ...] = Field((), description="Of one of these causes.")
    since: str | None = Field(
        None, description="Recorded from then on: an instant, or a duration back from now."
    )
    until: str | None = Field(None, description="Recorded before then.")
    due_since: str | None = Field(None, description="Of occurrences from then on.")
    due_until: str | None = Field(None, description="Of occurrences before then.")
    reason: str | None = Field(
        None, description="With this text in why it is in its state, or in its error."
    )
    task: str | None = Field(None, description="Of this Celery task.")


def filter_of(
    connection: sa.Connection,
    installation: Installation,
    wanted: Filter,
    cursor: str | None,
    *,
    all_apps: bool,
) -> OperationFilter:
    """Return what a filter means in a small app, or in all; raises NotFound and Refused."""
    scope, zone = scope_of(installation, all_apps=all_apps), installation.small_app.zone
    action = find(connection, installation, wanted.action) if wanted.action else None

    def instant(what: str, text: str | None) -> datetime | None:
        return None if text is None else past_instant_of(connection, what, text, zone)

    return OperationFilter(
        Scope(action["small_app_id"]) if action else scope,
        action["uid"] if action else None,
        wanted.words.split()[:MOST_WORDS],
        wanted.states,
        wanted.causes,
        instant("since", wanted.since),
        instant("until", wanted.until),
        None if cursor is None else place_of(cursor),
        instant("since", wanted.due_since),
        instant("until", wanted.due_until),
        wanted.reason or "",
        wanted.task,
    )


def place_of(cursor: str) -> UUID:
    """Return the operation at which a page ended; raises Refused."""
    try:
        return UUID(cursor)
    except ValueError:
        raise wrong_cursor(cursor) from None
