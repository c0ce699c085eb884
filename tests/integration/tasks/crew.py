"""An action whose step ends as told, and the notices of its ends."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

import minutebook
from minutebook.steps import StepOutcome, StepResult
from models.tables import notices
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import Change
from scheduler.changes.change import create_all
from tasks.execute import run_attempt
from tasks.notices import deliver
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation
from tests.told import told_as

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


class Crew:
    """An action whose step ends as told, and whoever is told of it."""

    def __init__(self, engine: sa.Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self.outcome = StepOutcome.SUCCESS
        self.error: str | None = None
        self.count = 0
        # What happens while the step runs.
        self.during: Callable[[], object] = lambda: None

        @minutebook.step("told")
        def told(context: minutebook.StepContext) -> StepResult:
            context.logger.info("line %s", context.run_number)
            self.during()
            if self.error is not None:
                raise minutebook.StepFailed(self.error)
            return StepResult("was told", outcome=self.outcome)

        self.registry = Registry()

    def make(self, **changes: Any) -> Change:
        document = make_document(operations={"told": True}, **changes)
        return create_all(self.engine, [document], author(self.registry.steps))[0]

    def run(self, action: Change, end: str = "success") -> UUID:
        self.error = "source is away" if end in {"failed", "pending"} else None
        self.outcome = StepOutcome.PARTIAL if end == "partial" else StepOutcome.SUCCESS
        self.count += 1
        id = make_operation(self.engine, action, NOON + timedelta(minutes=self.count))
        assert run_attempt(self.engine, self.settings, self.registry, (id, 1), "tests") == end
        return id

    def owed(self) -> list[tuple[str, str]]:
        return [(told_as(row), row["target"]["to"]) for row in self.rows()]

    def rows(self) -> list[sa.RowMapping]:
        with reading(self.engine) as connection:
            query = sa.select(notices).order_by(notices.c.created_at)
            return list(connection.execute(query).mappings())

    def deliver(self, settings: Settings | None = None) -> list[str]:
        """Make the next try of all that is owed, as workers do."""
        return [
            deliver(self.engine, settings or self.settings, (row["id"], row["tries"] + 1))
            for row in self.rows()
            if row["state"] == "owed"
        ]
