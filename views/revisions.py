"""The revisions of an action: what it was, when and by whom."""

from typing import Any

from pydantic import Field

from models.store import actions
from runtime.database import reading
from views.finding import find
from views.installation import Installation
from views.view import Instant, Listing, View


class Revision(View):
    """One revision of an action."""

    number: int
    author: str | None = Field(description="The account or the token that made it.")
    effective_from: Instant = Field(description="From when it decides.")
    ended_at: Instant | None = Field(description="When it ended, if nothing followed it.")
    end_reason: str | None
    document: Any = Field(description="As stored; null if it cannot be read.")


class Revisions(Listing[Revision]):
    """The revisions of an action, the newest first."""


def list_revisions(installation: Installation, name: str) -> Revisions:
    """Return the revisions of an action; raises NotFound."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        rows = actions.revisions_of(connection, row["uid"])
    return Revisions(tuple(Revision(**row) for row in rows))
