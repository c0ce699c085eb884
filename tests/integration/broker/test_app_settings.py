"""The settings of a small app where steps read them, and parameters of a new version."""

import pytest
import sqlalchemy as sa
from pydantic import BaseModel

import minutebook
from minutebook.steps import StepResult
from models.store.tenants import storing
from models.tables import actions
from models.tenant.document import parse_small_app
from runtime.config import Settings
from scheduler.changes import Change
from scheduler.changes.change import create_all
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation, row_of
from tests.integration.tasks.crew import NOON

APP = {"name": "default", "settings": {"currency": "EUR", "limits": {"rows": [5, 7]}}}


pytestmark = pytest.mark.usefixtures("own_steps")


def set_up(engine: sa.Engine, **changes: object) -> Change:
    with engine.begin() as connection:
        storing.apply(connection, parse_small_app(APP))
    return create_all(engine, [make_document(**changes)], author(Registry().steps))[0]


def run(engine: sa.Engine, settings: Settings, action: Change) -> str:
    id = make_operation(engine, action, NOON)
    return run_attempt(engine, settings, Registry(), (id, 1), "tests")


def test_a_step_reads_them_and_cannot_change_them(engine: sa.Engine, settings: Settings) -> None:
    seen: list[object] = []

    @minutebook.step("reads")
    def reads(context: minutebook.StepContext) -> StepResult:
        own = context.small_app.settings
        seen.extend([own["currency"], own["limits"]["rows"], sorted(own), len(own)])
        with pytest.raises(TypeError):
            own["currency"] = "USD"  # type: ignore[index]
        return StepResult(str(own.get("absent")))

    action = set_up(engine, operations={"reads": True})

    assert run(engine, settings, action) == "success"
    assert seen == ["EUR", (5, 7), ["currency", "limits"], 2]


def test_parameters_that_a_new_version_refuses_fail_the_operation_at_once(
    engine: sa.Engine, settings: Settings
) -> None:
    class Old(BaseModel):
        most: int = 1

    class New(BaseModel):
        folder: str
        most: int = 1

    @minutebook.step("grows", parameters=Old)
    def old(context: minutebook.StepContext) -> None: ...

    policy = {"retry": {"max_attempts": 3}}
    action = set_up(engine, operations={"grows": {"most": 2}}, policy=policy)

    @minutebook.step("grows", parameters=New)
    def new(context: minutebook.StepContext) -> None: ...

    id = make_operation(engine, action, NOON)
    assert run_attempt(engine, settings, Registry(), (id, 1), "tests") == "failed"
    assert "folder: is required" in row_of(engine, id)["error"]
    with engine.connect() as connection:
        assert connection.execute(sa.select(actions.c.quarantined)).scalars().all() == [None]
