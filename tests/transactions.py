"""A statement, a claim or an end in a transaction of its own."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import sqlalchemy as sa

from models.sql import read_clock
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.end import EndResult, Outcome
from models.store.operations.start_checks import NotStarted
from models.store.operations.take import Claim
from runtime.config import load_settings
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.changes import Change
from scheduler.explain import Explanation, explain
from tests.attempts import claim, end

Asked = ParamSpec("Asked")
Done = TypeVar("Done")
DEFAULTS = load_settings(Path("/nonexistent"), {})


def clock_of(engine: sa.Engine) -> datetime:
    """Return the instant that the database's clock shows."""
    with reading(engine) as connection:
        return read_clock(connection)


def fetched(engine: sa.Engine, query: sa.Executable) -> sa.Result[*tuple[Any, ...]]:
    """Return the rows of a query, all of them read."""
    with reading(engine) as connection:
        return connection.execute(query).freeze()()


def execute(engine: sa.Engine, statement: sa.Executable, given: Any = None) -> None:
    with engine.begin() as connection:
        connection.execute(statement, given)


def act(
    engine: sa.Engine,
    function: Callable[Concatenate[sa.Connection, Asked], Done],
    *given: Asked.args,
    **named: Asked.kwargs,
) -> Done:
    """Return what a function of a connection returns."""
    with engine.begin() as connection:
        return function(connection, *given, **named)


def claim_as(engine: sa.Engine, id: UUID, attempt: int, worker: str) -> Claim | NotStarted:
    with engine.begin() as connection:
        return claim(connection, id, attempt, worker, alerts=NO_ALERTS)


def finish(
    engine: sa.Engine,
    id: UUID,
    outcome: Outcome,
    attempt: int = 1,
    alerts: AlertSettings = NO_ALERTS,
) -> EndResult:
    with engine.begin() as connection:
        return end(connection, id, attempt, outcome, alerts=alerts)


def why(engine: sa.Engine, action: Change, at: datetime) -> Explanation:
    """Return why an action ran, or did not run, at an instant, by the defaults of the settings."""
    with reading(engine) as connection:
        return explain(action.uid, at, connection, DEFAULTS)
