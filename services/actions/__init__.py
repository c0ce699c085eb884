"""Views of actions in a list, of their documents and their revisions."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from models.store import actions
from models.store.actions.status import health_in, plan_in
from models.store.tenants.closing import is_due_as_stored
from models.stored import document_in
from runtime.database import reading
from services.installation import Installation
from services.lookup import find, number_in
from services.verbs import READ, Verb
from services.view import MOST_DOCUMENTS, Instant, Listing, Page, View, first_of

_STORED = (
    "uid", "name", "owner", "active", "revision", "quarantined", "created_at", "updated_at",
    "last_state", "last_run_at", "last_success_at",
)  # fmt: skip
_COUNTED = ("run_number", "failures_in_row", "bad_runs_in_a_row")


class ActionRow(View):
    """The status of an action."""

    uid: UUID = Field(description="Its id, which a new name does not change.")
    name: str = Field(description="Its name, unique in its small app.")
    app: str | None = Field(None, description="Its small app (tenant).")
    owner: str | None = Field(description="The owning application or person.")
    active: bool = Field(description="Whether it is enabled.")
    revision: int | None = Field(description="Number of its current revision.")
    quarantined: str | None = Field(description="Why it is quarantined, else null.")
    created_at: Instant | None = Field(description="When it was stored first.")
    updated_at: Instant | None = Field(description="When it was changed last.")
    last_state: str | None = Field(description="State of the operation that ended last.")
    last_run_at: Instant | None = Field(description="Start of its last run.")
    last_success_at: Instant | None = Field(description="Start of its last run that succeeded.")
    run_number: int = Field(description="How many of its operations ran.")
    failures_in_row: int = Field(
        description="How many of its last operations failed, without a success between."
    )
    bad_runs_in_a_row: int = Field(description="How many in a row ended as failed or partial.")
    is_healthy: bool = Field(description="Whether its last run succeeded and none is overdue.")
    health: str = Field(description="One sentence on why it is healthy or not.")
    standing: str = Field(description="`active`, `paused` or `quarantined` (quarantined).")
    next_occurrence_at: Instant | None = Field(description="Null also while it is paused.")
    next_if_resumed_at: Instant | None = Field(
        description="When a paused action runs next if it is resumed now, else null."
    )


class Actions(Listing[ActionRow]):
    """Actions by name."""


class StoredAction(View):
    """An action's document, as it is edited."""

    uid: UUID = Field(description="Uid of the action.")
    name: str = Field(description="Name of the action.")
    revision: int | None = Field(description="Number of its revision after the change.")
    document: Any = Field(description="As stored; a text if it is broken.")


class StoredActions(Listing[StoredAction]):
    """The documents of actions, by name."""


class Revision(View):
    """One revision of an action."""

    number: int = Field(description="Counts from 1.")
    author: str | None = Field(description="The account or the token that made it.")
    effective_from: Instant = Field(description="From when it decides.")
    ended_at: Instant | None = Field(description="When it ended, if nothing followed it.")
    end_reason: str | None = Field(description="What ended it; null for the current one.")
    document: Any = Field(description="As stored; null if it cannot be read.")


class Revisions(Listing[Revision]):
    """The revisions of an action, the newest first."""


def stored(installation: Installation, name: str) -> StoredAction:
    """Return an action's document; raises NotFound."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
    return StoredAction.of(row, document=document_in(row["document"]))


@Verb("list_revisions", "GET /api/actions/{action=name}/revisions", READ, pages=Revisions)
def revisions_of(
    installation: Installation, name: str, limit: int, cursor: str | None = None
) -> Page[Revision]:
    """Return the revisions of an action, the newest first.

    Raises NotFound, and Refused for a wrong cursor.
    """
    before, limit = None if cursor is None else number_in(cursor), min(limit, MOST_DOCUMENTS)
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        rows = actions.revisions_of(connection, row["uid"], before, limit + 1)
    shown, following = first_of(rows, limit, lambda row: row["number"])
    return Page[Revision](items=tuple(Revision(**row) for row in shown), next=following)


def row_of(
    row: Mapping[str, Any], now: datetime, alert_after: int, app: str | None = None
) -> ActionRow:
    """Return a listed action's status, with the occurrence after `now`.

    A paused action has no next occurrence, but `next_if_resumed_at`. `alert_after` is the number of
    failures that raise an alert, unless the action sets its own.
    """
    # A tick may not have found out yet that nothing is to come.
    next_at = due_next(row, now)
    is_over = next_at is None and row["event"] is None
    health = health_in({**row, "is_over": is_over}, alert_after)
    standing = "quarantined" if row["quarantined"] else "active" if row["active"] else "paused"
    is_paused = standing == "paused"
    return ActionRow(
        **{key: row[key] for key in _STORED},
        **{key: row[key] or 0 for key in _COUNTED},
        app=app,
        is_healthy=health.is_healthy,
        health=health.sentence,
        standing=standing,
        next_occurrence_at=None if is_paused else next_at,
        next_if_resumed_at=next_of_plan(row, now) if is_paused else None,
    )


def due_next(row: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the next occurrence of a listed action, also until a tick decides the one now.

    It is stored without calendars and ends, which the plan of `closing_rows` has.
    """
    at: datetime | None = row["next_occurrence_at"]
    is_stored = at is None or (at > now and is_due_as_stored(row["plan"]))
    return at if is_stored else next_of_plan(row, now)


def next_of_plan(row: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the next occurrence of a stored action; None for a broken plan.

    What is counted from an end is the next until it is decided.
    """
    from models.action.plan import UnreadablePlan
    from models.action.schedule import BEGINNING

    plan = plan_in(row)
    if isinstance(plan, UnreadablePlan):
        return None
    return plan.schedule(row["uid"]).next(now if plan.from_end is None else BEGINNING)
