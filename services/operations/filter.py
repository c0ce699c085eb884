"""Which operations a list shows, and a change of many concerns: the same filter for both."""

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from broker.names import OURS_BY_NAME
from models.filters import Filter
from models.operation import Cause, OperationState
from models.sql import read_clock
from models.store.actions.search import MOST_WORDS
from models.store.operations.pages import Wanted
from models.store.scope import Scope
from services.installation import Installation
from services.lookup import find, instant_of, scope_of, wrong_cursor


class OperationFilter(Filter):
    """Which operations; without a value, all."""

    action: str | None = Field(None, description="Of this action: its name or uid.")
    q: str = Field("", description="Words: each is in the name of the action.")
    state: tuple[OperationState, ...] = Field((), description="In one of these states.")
    cause: tuple[Cause, ...] = Field((), description="Of one of these causes.")
    since: str | None = Field(
        None, description="Recorded from then on: an instant, or a duration back from now."
    )
    until: str | None = Field(None, description="Recorded before then.")
    reason: str | None = Field(
        None, description="With this text in why it is in its state, or in its error."
    )
    task: str | None = Field(None, description="Of this Celery task.")
    queue: str | None = Field(None, description="Of this queue, as `queue list` names it.")


def wanted_by(
    connection: sa.Connection,
    installation: Installation,
    asked: OperationFilter,
    cursor: str | None,
    *,
    all_apps: bool,
) -> Wanted:
    """Return what a filter means in a small app, or in all; raises NotFound and Refused."""
    scope, zone = scope_of(installation, all_apps=all_apps), installation.small_app.zone
    action = find(connection, installation, asked.action) if asked.action else None

    def instant(what: str, text: str | None) -> datetime | None:
        return None if text is None else instant_of(what, text, zone, read_clock(connection))

    return Wanted(
        Scope(action["small_app_id"]) if action else scope,
        action["uid"] if action else None,
        asked.q.split()[:MOST_WORDS],
        asked.state,
        asked.cause,
        instant("since", asked.since),
        instant("until", asked.until),
        _place(cursor),
        asked.reason,
        asked.task,
        asked.queue and OURS_BY_NAME.get(asked.queue, asked.queue),
    )


def _place(cursor: str | None) -> UUID | None:
    try:
        return None if cursor is None else UUID(cursor)
    except ValueError:
        raise wrong_cursor(str(cursor)) from None
