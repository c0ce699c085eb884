"""The audit trail: who changed what, and when."""

from operator import itemgetter
from typing import Any

from pydantic import Field

from models.store import audit
from runtime.database import reading
from services.installation import Installation
from services.lookup import number_in
from services.verbs import ADMINISTER, Verb
from services.view import PAGE, Cursor, Instant, Limit, Page, View, first_of

# The verbs of these objects identify them by ids of ours.
WITH_IDS = frozenset({"action", "backfill", "link", "operation", "token"})


class AuditEntry(View):
    """A change that was made."""

    id: int = Field(description="Number of the entry; later ones are higher.")
    at: Instant = Field(description="When it was done.")
    app: str | None = Field(description="Its small app; null for the whole installation.")
    actor: str = Field(description="The account or the token that made it.")
    verb: str = Field(description="What was done, such as `action.change`.")
    object: str = Field(description="To what: a uid, an id or a name.")
    name: str | None = Field(
        default=None,
        description="Of the action, the operation's action or the token that `object` identifies;"
        " a deleted one keeps its last name. Null if `object` is a name.",
    )
    details: Any = Field(description="What was changed, as JSON; it depends on the verb.")


class AuditPage(Page[AuditEntry]):
    """Entries of the audit trail, the newest first."""


@Verb("list_audit", "GET /api/audit", ADMINISTER)
def list_entries(
    installation: Installation, limit: Limit = PAGE, cursor: Cursor = None
) -> AuditPage:
    """Return who changed what, the newest first.

    Raises Refused for a wrong cursor.
    """
    before = None if cursor is None else number_in(cursor)
    with reading(installation.engine) as connection:
        rows = audit.listed(connection, installation.scope, limit + 1, before)
        # An object that a user named could be the id of another small app's action.
        ids = {row["object"] for row in rows if row["verb"].partition(".")[0] in WITH_IDS}
        names = audit.names_of(connection, ids)
    shown, following = first_of(rows, limit, itemgetter("id"))
    items = (AuditEntry.of({**row, "name": names.get(row["object"])}) for row in shown)
    return AuditPage(items=tuple(items), next=following)
