"""Why an action ran, or did not run, at an instant."""

from uuid import UUID

from pydantic import Field

from models.sql import read_clock
from models.store.actions.status import plan_in
from runtime.database import reading
from scheduler.explain import explain as explained
from services.actions.rules import zone_of
from services.installation import Installation
from services.lookup import app_of, find, instant_of
from services.verbs import READ, Verb
from services.view import Instant, View


class ExplainedOperation(View):
    """An operation of that instant."""

    id: UUID = Field(description="Id of the operation.")
    state: str = Field(description="Its state.")
    subject: str | None = Field(description="The user of its event.")
    triggerer: str = Field(description="Who or what caused it.")
    revision: int = Field(description="The action's revision that it ran, or runs.")
    text: str = Field(description="Its result in a sentence.")


class Explanation(View):
    """Why an action ran, or did not run, at an instant."""

    action: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Uid of the action.")
    instant: Instant = Field(description="The instant that is explained.")
    verdict: str = Field(
        description="`not_an_occurrence`, `not_due_yet`, `undecided`, `paused`, `quarantined`,"
        " `deleted`, `pruned`, `unrecorded`, or the state of the occurrence's operation."
    )
    text: str = Field(description="Why, in a sentence.")
    revision: int | None = Field(description="The revision that was in force then.")
    operations: tuple[ExplainedOperation, ...] = Field(
        description="The operations of that instant."
    )
    zone: str = Field(description="IANA zone of the action.")


@Verb("explain_action", "GET /api/actions/{action}/explain?user=subject", READ)
def explain(
    installation: Installation, action: str, at: str, subject: str | None = None
) -> Explanation:
    """Explain why an action ran, or did not run, at an instant.

    A deleted action is named by its uid; `at` without an offset is in the action's zone.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, action, include_deleted=True)
        zone = zone_of(plan_in(row), app_of(connection, installation, row).zone)
        wanted = instant_of("the instant", at, zone, read_clock(connection))
        found = explained(row["uid"], wanted, connection, installation.settings, subject)
    return Explanation.of(found, zone=zone)
