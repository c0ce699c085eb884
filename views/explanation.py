"""Why an action ran, or did not run, at an instant."""

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.errors import NotFound
from models.store import actions
from models.store.actions import as_uid
from runtime.database import reading
from scheduler.explain import explain as explained
from tasks.built_in import built_in_steps
from views.finding import app_of, find, instant_of
from views.installation import Installation
from views.view import Instant, View
from views.words import zone_of


class ExplainedOperation(View):
    """An operation of that instant."""

    id: UUID
    state: str
    subject: str | None = Field(description="The user of its event.")
    triggerer: str = Field(description="Who or what caused it.")
    revision: int
    text: str = Field(description="Its result in a sentence.")


class Explanation(View):
    """Why an action ran, or did not run, at an instant."""

    action: str
    uid: UUID
    instant: Instant
    verdict: str = Field(
        description="`not_an_occurrence`, `not_due_yet`, `undecided`, `paused`, `set_aside`,"
        " `deleted`, `pruned`, or the state of the occurrence's operation."
    )
    text: str = Field(description="Why, in a sentence.")
    revision: int | None = Field(description="The revision that was in force then.")
    operations: tuple[ExplainedOperation, ...]
    zone: str = Field(description="IANA zone of the action.")


def explain(
    installation: Installation, action: str, at: str, subject: str | None = None
) -> Explanation:
    """Explain why an action ran, or did not run, at an instant.

    A deleted action is named by its uid; `at` without an offset is in the action's zone.
    """
    with reading(installation.engine) as connection:
        uid, zone = _found(connection, installation, action)
        wanted = instant_of("the instant", at, zone)
        found = explained(uid, wanted, connection, installation.settings, subject, built_in_steps())
    return Explanation(**{name: getattr(found, name) for name in found.__slots__}, zone=zone)


def _found(connection: sa.Connection, installation: Installation, action: str) -> tuple[UUID, str]:
    """Return an action's uid, deleted or not, and the zone in which its instants are read."""
    try:
        row: Any = find(connection, installation, action)
    except NotFound:
        uid = as_uid(action)
        if uid is None or not actions.is_known(connection, uid, installation.scope):
            raise
        return uid, installation.small_app.zone
    return row["uid"], zone_of(row["plan"], app_of(connection, installation, row).zone)
