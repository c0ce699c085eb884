"""The recipients of the mail about new data, and whether a run sends it."""

from dataclasses import dataclass

import sqlalchemy as sa

from minutebook.steps import Recipient
from models.action.document import ScheduledActionModel
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.parsing import Reading
from models.store import tenants
from models.store.people import users
from models.values import flag_of

DEFAULT_RECIPIENTS = {"groups": [EVERYBODY]}


@dataclass(frozen=True, slots=True)
class Readers:
    """The recipients of the "new data available" mail, and what the small app says about it."""

    recipients: list[Recipient]
    app_notifies: bool

    def are_mailed(self, choice: bool | None, *, is_manual: bool) -> bool:
        """Return whether a run that publishes something mails; `choice` None follows the app."""
        if choice is None:
            return is_manual and self.app_notifies and bool(self.recipients)
        return choice


def readers_of(connection: sa.Connection, small_app_id: int) -> Readers:
    """Return the readers of a small app's new data."""
    app = tenants.document_of(connection, small_app_id)
    rule = app.get("notify_recipients", DEFAULT_RECIPIENTS)
    filtered = RecipientFilterModel.model_validate(rule, context=Reading(tolerant=True))
    recipients = users.recipients_of(connection, small_app_id, filtered)
    return Readers(list(recipients), bool(app.get("notify", True)))


def mailed(
    connection: sa.Connection, small_app_id: int, model: ScheduledActionModel, notify: bool | None
) -> dict[str, tuple[str, list[Recipient]]]:
    """Return what a manual run of an action mails its readers, by the step that does it.

    `notify` is what the user said; None follows the action.
    """
    step = next((one for one in model.operations.steps if one.name == "publish"), None)
    if step is None:
        return {}
    of_step, readers = step.parameters.get("notify"), readers_of(connection, small_app_id)
    choice = notify if of_step is None or notify is not None else flag_of(of_step)
    if not readers.are_mailed(choice, is_manual=True):
        return {}
    return {step.name: ("if something new is published", readers.recipients)}
