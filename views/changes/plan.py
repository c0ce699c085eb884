"""Plan changes: what applying documents would do, without storing them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.sql import read_clock
from runtime.database import reading
from scheduler.changes import plan
from scheduler.changes.change import switched_by
from views.actions.rules import YEAR, daylight_notes, rules_in_words, zone_of
from views.changes import Author, Prune, author_now, pruning
from views.changes.pruning import Pruned
from views.finding import app_of, find
from views.installation import Installation
from views.verbs import ACTION, EDIT, Verb
from views.view import Instant, View


class PlannedChange(View):
    """What applying one document would do to its action."""

    name: str = Field(description="Name of the action.")
    uid: UUID | None = Field(description="Null for a new action.")
    change: str = Field(description="`created`, `changed` or `unchanged`.")
    revision: int = Field(description="The revision that it would get.")
    switched: str | None = Field(
        description="`paused` or `resumed` if the change would do that, else null."
    )
    when: tuple[str, ...] = Field(description="The new rule in words.")
    when_before: tuple[str, ...] = Field(
        (), description="The old rule in words; empty for a new action."
    )
    is_on_events: bool = Field(description="Whether events make it due by the new rule.")
    next_before: tuple[Instant, ...] = Field(description="Next occurrences by the old rule.")
    next_after: tuple[Instant, ...] = Field(description="Next occurrences by the new rule.")
    sent_at_once: tuple[Instant, ...] = Field(
        description="Occurrences of the old rule that the change sends, up to now."
    )
    missed: int = Field(description="Occurrences of the old rule that it records as missed.")
    daylight_saving: tuple[str, ...] = Field(
        description="Effects of clock changes on the new rule in the next 366 days."
    )
    zone: str = Field(description="IANA zone of the new rule, else the small app's.")
    zone_before: str = Field(description="IANA zone of the old rule, else that of the new one.")


class BusyMinute(View):
    """A minute and the number of operations it sends."""

    at: Instant = Field(description="The minute.")
    sent: int = Field(description="How many operations are sent in it.")


class BusiestMinute(View):
    """The busiest minute of the next 24 hours, over all small apps."""

    before: BusyMinute | None = Field(description="Without the change; null if nothing is sent.")
    after: BusyMinute | None = Field(description="With the change; null if nothing is sent.")
    is_whole: bool = Field(description="False if only the actions due first are counted.")


class ChangePlan(View):
    """What applying documents would do."""

    actions: tuple[PlannedChange, ...] = Field(description="What happens to each action.")
    pruned: tuple[Pruned, ...] = Field((), description="The actions that it would delete.")
    busiest_minute: BusiestMinute = Field(description="The minute in which most is sent.")


@Verb("preview_actions", "POST /api/actions:preview", EDIT, kind=ACTION)
def plan_changes(
    installation: Installation,
    documents: Sequence[object],
    prune: Prune = None,
) -> ChangePlan:
    """Return what applying documents would do now; nothing is stored.

    See `changes.apply` for `prune`.
    """
    author, now = author_now(installation)
    with reading(installation.engine) as connection:
        gone: Sequence[Pruned] = ()
        if prune is not None:
            documents = pruning.owned(connection, installation, documents, prune)
            gone = pruning.beside(connection, installation, documents, prune)
        planned = plan.plan_changes(connection, documents, author, now)
        made = _plan(connection, planned, installation.small_app.zone, now)
    return made.model_copy(update={"pruned": tuple(gone)})


@Verb("preview_action", "POST /api/actions/{action=name}:preview", EDIT, kind=ACTION)
def plan_put(installation: Installation, name: str, document: object) -> ChangePlan:
    """Return what making the document the action's next revision would do; nothing is stored.

    The document may rename the action. Raises NotFound, InvalidAction, and Refused for a taken
    name.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
        author, now = installation.author_in(app), read_clock(connection)
        planned = plan.plan_replacement(connection, row["uid"], document, author, now)
        return _plan(connection, [planned], app.zone, now)


def preview(
    installation: Installation, name: str | None, document: object, known: Author
) -> PlannedChange:
    """Return what storing one document would do, as `plan_put`, or as a new action for no name.

    The busiest minute is left out, because it reads thousands of other actions, and this is called
    while a person types. `known` is the author and the instant of the request.
    """
    author, now = known
    with reading(installation.engine) as connection:
        if name is None:
            (planned,) = plan.plan_changes(connection, [document], author, now)
            return _shown(planned, now, installation.small_app.zone)
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
        planned = plan.plan_replacement(connection, row["uid"], document, author, now)
        return _shown(planned, now, app.zone)


def _plan(
    connection: sa.Connection, planned: Sequence[plan.PlannedChange], zone: str, now: datetime
) -> ChangePlan:
    load = plan.load(connection, planned, now)
    busiest = BusiestMinute(
        before=_busy(load.before), after=_busy(load.after), is_whole=load.is_whole
    )
    return ChangePlan(
        actions=tuple(_shown(one, now, zone) for one in planned), busiest_minute=busiest
    )


def _busy(minute: tuple[datetime, int] | None) -> BusyMinute | None:
    return None if minute is None else BusyMinute(at=minute[0], sent=minute[1])


def _shown(one: plan.PlannedChange, now: datetime, zone: str) -> PlannedChange:
    old = one.plan_before
    return PlannedChange.of(
        one,
        revision=one.number,
        switched=None if old is None else switched_by(old.active, one.plan.active),
        is_on_events=one.plan.on_event is not None,
        when=rules_in_words(one.plan, zone_of(one.plan, zone)),
        next_before=one.before,
        next_after=one.after,
        sent_at_once=one.sent,
        when_before=() if old is None else rules_in_words(old, zone_of(old, zone)),
        daylight_saving=daylight_notes(one.plan, now, now + YEAR),
        zone=zone_of(one.plan, zone),
        zone_before=zone_of(old or one.plan, zone),
    )
