"""Views of one action: with its next occurrences, and with all details."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.action.plan import Plan, UnreadablePlan
from models.sql import read_clock
from models.store import actions, operations
from models.store.actions.status import plan_in
from models.store.operations import backfills
from models.stored import document_in
from models.values.zones import in_zone
from runtime.database import reading
from scheduler.forecast import coming
from services.actions import ActionRow, row_of
from services.actions.rules import YEAR, daylight_notes, rules_in_words, zone_of
from services.backfills import Backfill, backfill_of
from services.installation import Installation
from services.lookup import app_of, find
from services.verbs import READ, Verb
from services.view import Instant, Listing, View

SHOWN = 5
MOST_DEPENDANTS = 100


class Occurrence(View):
    """A scheduled time of an action."""

    utc: Instant = Field(description="When it is due, in UTC.")
    local: str = Field(description="The same on the clock of `zone`, with its offset.")
    zone: str = Field(description="IANA zone of the action.")
    subject: str | None = Field(None, description="The user for whom an event makes it due.")
    is_paused: bool = Field(False, description="Whether it is due only if it is resumed now.")


class Occurrences(Listing[Occurrence]):
    """The next occurrences of an action."""


class Upcoming(View):
    """The rules and next occurrences of an action."""

    when: tuple[str, ...] = Field(description="Its rules in words.")
    zone: str = Field(description="IANA zone of `local`: that of its first rule, else the app's.")
    next: tuple[Occurrence, ...] = Field(description="Its next occurrences, in order.")
    daylight_saving: tuple[str, ...] = Field(
        (), description="Effects of clock changes in the next 366 days."
    )
    is_about_users: bool = Field(False, description="Whether events of users make it due.")
    after: str | None = Field(None, description="The action whose ends make it due, else null.")
    is_from_end: bool = Field(False, description="Whether it counts from the end of its last run.")


class RecentOperation(View):
    """One of an action's last operations."""

    id: UUID = Field(description="Id of the operation.")
    occurrence_at: Instant = Field(description="The instant at which it was due.")
    state: str = Field(description="Its state: `success`, `failed`, `missed` and so on.")
    reason: str | None = Field(description="Why it is in its state, if there is a reason.")
    error: str | None = Field(description="Why it failed, or failed in part.")


class NamedAction(View):
    """An action of the same small app."""

    uid: UUID = Field(description="Uid of the action.")
    name: str = Field(description="Name of the action.")


class Action(ActionRow, Upcoming):
    """An action with all details."""

    document: Any = Field(description="As stored; a text if it is broken.")
    operations: tuple[RecentOperation, ...] = Field(
        description="Its last operations, the newest first."
    )
    backfills: tuple[Backfill, ...] = Field(description="Its last backfills, the newest first.")
    after_uid: UUID | None = Field(description="The uid of `after`, if there is that action.")
    dependants: tuple[NamedAction, ...] = Field(
        description="The first hundred actions that its ends make due."
    )


@Verb("show_action", "GET /api/actions/{action=name}", READ)
def show(installation: Installation, name: str) -> Action:
    """Return an action of the small app with its rule, its last operations and backfills."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        return shown_in(connection, installation, row, read_clock(connection))


def shown_in(
    connection: sa.Connection,
    installation: Installation,
    row: Mapping[str, Any],
    now: datetime,
    count: int = SHOWN,
    runs: int = SHOWN,
) -> Action:
    """Return a stored action with all details, its next `count` occurrences and last `runs`."""
    app = app_of(connection, installation, row)
    recent = operations.recent(connection, runs, uid=row["uid"]) if runs else ()
    filled = backfills.of_action(connection, row["uid"], SHOWN)
    after_it = actions.dependants(connection, row["small_app_id"], row["name"], MOST_DEPENDANTS)
    upcoming = upcoming_in(connection, row, now, app.zone, count)
    summary = row_of(row, now, installation.settings.alert.after, app.name)
    return Action(
        **(dict(summary) | dict(upcoming)),
        document=document_in(row["document"]),
        operations=tuple(RecentOperation.of(one) for one in recent),
        backfills=tuple(map(backfill_of, filled)),
        after_uid=actions.uid_named(connection, row["small_app_id"], upcoming.after),
        dependants=tuple(NamedAction.of(one) for one in after_it),
    )


@Verb("next_occurrences", "GET /api/actions/{action=name}/next", READ)
def next_of(
    installation: Installation, name: str, count: Annotated[int, Field(ge=1, le=1000)] = 5
) -> Occurrences:
    """Return the next occurrences of an action, in its zone and in UTC."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
        found = upcoming_in(connection, row, read_clock(connection), app.zone, count)
    return Occurrences(found.next)


def upcoming_in(
    connection: sa.Connection, row: Mapping[str, Any], now: datetime, zone: str, count: int = SHOWN
) -> Upcoming:
    """Return the schedule of a stored action, empty for a broken plan."""
    plan = plan_in(row)
    if isinstance(plan, UnreadablePlan):
        return Upcoming(when=(), zone=zone, next=())
    return upcoming_of(connection, (row["small_app_id"], row["uid"]), plan, (now, zone), count)


def upcoming_of(
    connection: sa.Connection,
    whose: tuple[int, UUID],
    plan: Plan,
    seen: tuple[datetime, str],
    count: int = SHOWN,
) -> Upcoming:
    """Return a plan's schedule after an instant, in its own zone or the given one.

    `whose` is the small app and the action.
    """
    now, zone = seen[0], zone_of(plan, seen[1])
    return Upcoming(
        when=rules_in_words(plan, zone),
        zone=zone,
        next=tuple(
            Occurrence(
                utc=one.at,
                local=in_zone(one.at, zone),
                zone=zone,
                subject=one.subject,
                is_paused=not plan.active,
            )
            for one in coming(connection, whose, plan, now, count)
        ),
        daylight_saving=daylight_notes(plan, now, now + YEAR),
        is_about_users=plan.on_event is not None and plan.watched is None,
        after=plan.watched,
        is_from_end=plan.from_end is not None,
    )
