"""Views of actions: in a list, with next occurrences, with all details."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.action.health import Health, health_of
from models.action.plan import Broken, Plan, hooks_of
from models.sql import read_clock
from models.store import actions, operations
from models.store.operations import backfills
from models.stored import document_in
from models.values.zones import in_zone
from runtime.database import reading
from scheduler.foresee import coming
from scheduler.occurrence import next_occurrences
from views.backfills import Backfill, backfill_of
from views.finding import app_of, find, number_in
from views.installation import Installation
from views.verbs import READ, Verb
from views.view import Instant, Listing, Page, View, first_of, fitting
from views.words import YEAR, daylight_notes, rules_in_words, zone_of

SHOWN = 5
MOST_DEPENDANTS = 100
PRIORITY = "Among operations of its small app that wait, the highest goes first."
_STORED = (
    "uid", "name", "owner", "active", "revision", "set_aside", "created_at", "updated_at",
    "last_state", "last_run_at", "last_success_at",
)  # fmt: skip
_COUNTED = ("run_number", "failures_in_row", "troubles_in_row")


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
    priority: int = Field(0, description=PRIORITY)


class Reach(View):
    """Whom an action reaches now."""

    count: int = Field(description="How many users it has now.")
    first: tuple[str, ...] = Field(description="Names of the first ten.")


class Described(Upcoming):
    """The meaning of an action's document."""

    name: str = Field(description="Name of the action.")
    reach: Reach | None = Field(
        None, description="Null if it has no recipients, and where many documents are checked."
    )
    warnings: tuple[str, ...] = Field(description="What its admin should check.")


class ActionRow(View):
    """The status of an action."""

    uid: UUID = Field(description="Its id, which a new name does not change.")
    name: str = Field(description="Its name, unique in its small app.")
    app: str | None = Field(None, description="Its small app (tenant).")
    owner: str | None = Field(description="The owning application or person.")
    active: bool = Field(description="Whether it is enabled.")
    revision: int | None = Field(description="Number of its current revision.")
    set_aside: str | None = Field(description="Why it is quarantined, else null.")
    created_at: Instant | None = Field(description="When it was stored first.")
    updated_at: Instant | None = Field(description="When it was changed last.")
    last_state: str | None = Field(description="State of the operation that ended last.")
    last_run_at: Instant | None = Field(description="Start of its last run.")
    last_success_at: Instant | None = Field(description="Start of its last run that succeeded.")
    run_number: int = Field(description="How many of its operations ran.")
    failures_in_row: int = Field(
        description="How many of its last operations failed, without a success between."
    )
    troubles_in_row: int = Field(description="How many in a row ended as failed or partial.")
    is_healthy: bool = Field(description="Whether its last run succeeded and none is overdue.")
    health: str = Field(description="One sentence on why it is healthy or not.")
    standing: str = Field(description="`active`, `paused` or `set aside` (quarantined).")
    next_occurrence_at: Instant | None = Field(description="Null also while it is paused.")
    next_if_resumed_at: Instant | None = Field(
        description="When a paused action runs next if it is resumed now, else null."
    )
    priority: int = Field(0, description=PRIORITY)


class Actions(Listing[ActionRow]):
    """Actions by name."""


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


@Verb("show_action", "GET /api/actions/{action=name}", READ)
def show(installation: Installation, name: str) -> Action:
    """Return an action of the small app with its rule, its last operations and backfills."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name, installation.settings.alert.overdue)
        return shown_in(connection, installation, row, read_clock(connection))


def stored(installation: Installation, name: str) -> StoredAction:
    """Return an action's document; raises NotFound."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
    return StoredAction.of(row, document=document_in(row["document"]))


def shown_in(
    connection: sa.Connection,
    installation: Installation,
    row: Mapping[str, Any],
    now: datetime,
    count: int = SHOWN,
) -> Action:
    """Return a stored action with all details and its next `count` occurrences."""
    app = app_of(connection, installation, row)
    recent = operations.recent(connection, SHOWN, uid=row["uid"])
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


@Verb("next_occurrences", "GET /api/actions/{action=name}/next", READ, is_heavy=True)
def next_of(
    installation: Installation, name: str, count: Annotated[int, Field(ge=1, le=1000)] = 5
) -> Occurrences:
    """Return the next occurrences of an action, in its zone and in UTC."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
        found = upcoming_in(connection, row, read_clock(connection), app.zone, count)
    return Occurrences(found.next)


@Verb("list_revisions", "GET /api/actions/{action=name}/revisions", READ, pages=Revisions)
def revisions_of(
    installation: Installation, name: str, limit: int, cursor: str | None = None
) -> Page[Revision]:
    """Return the revisions of an action, the newest first.

    Raises NotFound, and Refused for a wrong cursor.
    """
    before = None if cursor is None else number_in(cursor)
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        fit = fitting(actions.revision_lengths(connection, row["uid"], before, limit))
        rows = actions.revisions_of(connection, row["uid"], before, fit + 1)
    shown, following = first_of(rows, fit, lambda row: row["number"])
    return Page[Revision](items=tuple(Revision(**row) for row in shown), next=following)


def row_of(
    row: Mapping[str, Any], now: datetime, alert_after: int, app: str | None = None
) -> ActionRow:
    """Return a listed action's status, with the occurrence after `now` until a tick schedules it.

    A paused action has no next occurrence, but `next_if_resumed_at`. `alert_after` is the number of
    failures that raise an alert, unless the action sets its own.
    """
    # A tick may not have found out yet that nothing is to come.
    next_at = due_next(row, now)
    is_over = next_at is None and row["event"] is None
    health = health_in({**row, "is_over": is_over}, alert_after)
    standing = "set aside" if row["set_aside"] else "active" if row["active"] else "paused"
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
        priority=row["plan"].policy.priority if isinstance(row["plan"], Plan) else 0,
    )


def health_in(row: Mapping[str, Any], alert_after: int) -> Health:
    """Return the health of a listed action."""
    hooks = hooks_of(row["plan"])
    return health_of(row, (hooks and hooks.alert_after) or alert_after)


def upcoming_in(
    connection: sa.Connection, row: Mapping[str, Any], now: datetime, zone: str, count: int = SHOWN
) -> Upcoming:
    """Return the schedule of a stored action, empty for a broken plan."""
    plan = row["plan"]
    if isinstance(plan, Broken):
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
        when=rules_in_words(plan, whose[1], zone),
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
        daylight_saving=daylight_notes(plan, whose[1], now, now + YEAR),
        is_about_users=plan.on_event is not None and plan.watched is None,
        after=plan.watched,
        is_from_end=plan.from_end is not None,
        priority=plan.policy.priority,
    )


def due_next(row: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the next occurrence of a listed action, also until a tick schedules it."""
    at: datetime | None = row["next_occurrence_at"]
    return next_of_plan(row, now) if at is not None and at <= now else at


def next_of_plan(row: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the next occurrence of a stored action; None for a broken plan."""
    plan = row["plan"]
    if isinstance(plan, Broken):
        return None
    return next(iter(next_occurrences(plan, row["uid"], now, 1)), None)
