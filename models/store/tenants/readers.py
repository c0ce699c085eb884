"""The recipients of the mail about new data, and whether a run sends it."""

from dataclasses import dataclass

import sqlalchemy as sa

from minutebook.steps import Recipient
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.parsing import Reading
from models.store import tenants
from models.store.people import users

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
