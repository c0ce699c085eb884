"""Actions whose steps are functions of a test, run in this process, and the notices they owe."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

import minutebook
from minutebook.steps import StepOutcome, StepResult
from models.tables import notices
from runtime.config import Settings, load_settings
from scheduler.changes import Change
from scheduler.changes.change import create_all
from tasks.execute import run_attempt
from tasks.notices import deliver
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation, row_of
from tests.ticks import MINUTE
from tests.told import told_as
from tests.transactions import fetched

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
ANN = {"mail": "ann@example.com"}
OPS = "ops@example.com"
# Who is alerted of the first failure.
ALERTED = {"SCHED_ALERT_MAIL": OPS, "SCHED_ALERT_AFTER": "1"}
Step = Callable[[minutebook.StepContext], Any]
# Tells a channel of a URL.
Tell = Callable[..., None]


def only_notice(engine: sa.Engine) -> sa.RowMapping:
    return fetched(engine, sa.select(notices)).mappings().one()


class Work:
    """Actions and their attempts; a step has the name of its function."""

    def __init__(self, engine: sa.Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings

    def action(self, *steps: Step, **document: Any) -> Change:
        """Store an action with these steps, or with maintenance."""
        names = [minutebook.step(one.__name__)(one).__name__ for one in steps] or ["maintenance"]
        made = make_document(**{"operations": dict.fromkeys(names, True), **document})
        return create_all(self.engine, [made], author(Registry().steps))[0]

    def operation(self, action: Change, number: int = 0) -> UUID:
        """Record an operation, at so many minutes after noon."""
        return make_operation(self.engine, action, NOON + number * MINUTE)

    def attempt(self, id: UUID, attempt: int = 1) -> str:
        """Run an attempt; return how it ended."""
        return run_attempt(self.engine, self.settings, Registry(), (id, attempt), "tests")

    def ends(self, action: Change, *attempts: int) -> list[str]:
        """Record an operation; return how its attempts ended."""
        id = self.operation(action)
        return [self.attempt(id, number) for number in attempts or (1,)]

    def ran(self, *steps: Step, **document: Any) -> dict[str, Any]:
        """Return the row of an operation with these steps after its first attempt."""
        id = self.operation(self.action(*steps, **document))
        self.attempt(id)
        return row_of(self.engine, id)


class Crew(Work):
    """An action whose step ends as told, and whoever is told of it."""

    def __init__(self, engine: sa.Engine, settings: Settings) -> None:
        super().__init__(engine, settings)
        self.outcome = StepOutcome.SUCCESS
        self.error: str | None = None
        self.count = 0
        # What happens while the step runs.
        self.during: Callable[[], object] = lambda: None
        self.environ = {
            "SCHED_DATABASE_URL": settings.database_url.get_secret_value(),
            "SCHED_BROKER_URL": settings.broker_url.get_secret_value(),
            "SCHED_SECRETS_ENV": "*",
            "SCHED_SECRETS_FOLDER": "/",
        }
        self.sets(SCHED_HOOK_ALLOW_PRIVATE="true")

        @minutebook.step("told")
        def told(context: minutebook.StepContext) -> StepResult:
            context.logger.info("line %s", context.run_number)
            self.during()
            if self.error is not None:
                raise minutebook.StepFailed(self.error)
            return StepResult("was told", outcome=self.outcome)

    def sets(self, **environ: str) -> None:
        """Set variables of the environment, or unset them with an empty text."""
        self.environ |= environ
        given = {name: value for name, value in self.environ.items() if value}
        self.settings = load_settings(self.settings.home, given)

    def make(self, **document: Any) -> Change:
        """Store an action that ends as told, which may name all channels."""
        made = make_document(operations={"told": True}, **document)
        its = author(Registry().steps, channels=tuple(self.settings.notify))
        return create_all(self.engine, [made], its)[0]

    def run(self, action: Change, *ends: str) -> UUID:
        """Run an action as often as it is told how to end; return the last operation."""
        for end in ends or ("success",):
            self.error = "source is away" if end in {"failed", "pending"} else None
            self.outcome = StepOutcome.PARTIAL if end == "partial" else StepOutcome.SUCCESS
            self.count += 1
            id = self.operation(action, self.count)
            assert self.attempt(id) == end
        return id

    def owe(self, webhook: str, **document: Any) -> UUID:
        """Run an action whose success a webhook hears of."""
        return self.run(self.make(hooks={"on_success": [{"webhook": webhook}]}, **document))

    def owed(self) -> list[tuple[str, str]]:
        """Return what all notices tell, and whom."""
        return [(told_as(row), row["target"]["to"]) for row in self.rows()]

    def states(self) -> list[tuple[str, str, str | None]]:
        """Return what all notices tell, their states and errors."""
        return [(told_as(row), row["state"], row["error"]) for row in self.rows()]

    def error_told(self) -> str:
        return str(only_notice(self.engine)["error"])

    def rows(self) -> list[sa.RowMapping]:
        query = sa.select(notices).order_by(notices.c.created_at)
        return list(fetched(self.engine, query).mappings())

    def deliver(self) -> list[str]:
        """Make the next try of all that is owed, as workers do."""
        return [
            deliver(self.engine, self.settings, (row["id"], row["tries"] + 1))
            for row in self.rows()
            if row["state"] == "owed"
        ]
