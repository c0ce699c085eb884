"""Which rows a look-up may find."""

from dataclasses import dataclass

import sqlalchemy as sa

from models.sql import unindexed


@dataclass(frozen=True, slots=True)
class Scope:
    """One small app (tenant), or the whole installation if `small_app_id` is None.

    Each look-up by an id or a uid from outside takes a scope; what it leaves out is reported as
    unknown. The ids in a row that was found are followed without one.
    """

    small_app_id: int | None

    def has(self, small_app_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        """Return the condition that a row's small app is in the scope."""
        return sa.true() if self.small_app_id is None else small_app_id == self.small_app_id

    def has_unindexed(self, small_app_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        """Return the same for few rows that another condition finds, such as those that run.

        SQLite would read all of the small app by its index.
        """
        return unindexed(self.has(small_app_id))


WHOLE_INSTALLATION = Scope(None)
