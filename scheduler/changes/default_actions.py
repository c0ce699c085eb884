"""Create the default action `maintenance` of a small app, once.

The small app's row records it, so that a renamed or deleted action is never created again. Only a
deleted small app that is created again gets a new one.
"""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from minutebook.steps import SmallApp, Steps
from models.action.document import ParseContext
from models.errors import InvalidAction
from models.sql import read_clock
from models.store import actions, schema, tenants
from models.store.tenants import GIVEN_OWNER
from runtime.logs.events import EventLog
from scheduler.changes.batch import store
from scheduler.changes.revisions import revision_of
from scheduler.changes.validation import ChangeContext
from scheduler.tz_release import be_first

logger = EventLog("minutebook.upkeep")

NAME = "maintenance"
OWNER = GIVEN_OWNER


def maintenance_document(zone: str) -> dict[str, Any]:
    """Return the document of the default action: daily at 04:00 in `zone`.

    With a day of look-back, a laptop that sleeps at four runs it when it wakes up.
    """
    return {
        "name": NAME,
        "description": "Prunes history by the retention settings.",
        "owner": OWNER,
        "operations": {"maintenance": True},
        "when": {"cron_rule": "0 4 * * *", "timezone": zone},
        "policy": {"look_back": "P1D"},
    }


@dataclass(frozen=True, slots=True)
class Migrated:
    """The schema's revision before (or None) and after; the apps that got their maintenance."""

    before: str | None
    after: str | None
    maintained: tuple[str, ...]


def migrate(engine: sa.Engine, steps: Steps) -> Migrated:
    """Upgrade to the newest schema, and create missing maintenance actions."""
    before, after = schema.migrate(engine)
    with engine.begin() as connection:
        apps = tenants.never_maintained(connection)
        given = tuple(app.name for app in apps if give_maintenance(connection, app, steps))
    return Migrated(before, after, given)


def give_maintenance(connection: sa.Connection, app: SmallApp, steps: Steps) -> bool:
    """Create the default action of a small app that never had one; return whether it was created.

    An existing action of that name is left alone.
    """
    now = read_clock(connection)
    context = ParseContext(app.zone, now, steps)
    try:
        revision = revision_of(maintenance_document(app.zone), context, OWNER)
    except InvalidAction as error:
        # This tz release lacks the zone; the next one may know it.
        logger.error(
            "default_action_refused",
            "small app {app}: its action {action} was not created: {error}",
            app.name,
            NAME,
            error,
        )
        return False
    if not tenants.note_maintained(connection, app.id):
        return False
    if actions.uid_named(connection, app.id, NAME) is not None:
        return False
    be_first(connection)
    store(connection, [revision], [], ChangeContext(OWNER, app, steps), now)
    return True
