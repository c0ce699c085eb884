"""The database refuses edits of actions by plain SQL, and says what to use instead."""

import json
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.tables import actions
from scheduler.changes import Change
from tests.factories import make_action, make_document
from tests.transactions import execute, fetched

DOCUMENT = json.dumps(make_document(description="by hand"))


@pytest.fixture
def action(engine: sa.Engine) -> Change:
    return make_action(engine, description="stored")


def row(engine: sa.Engine, action: Change) -> Any:
    return fetched(engine, sa.select(actions).where(actions.c.uid == action.uid)).one()


def write(engine: sa.Engine, statement: str, **values: object) -> None:
    execute(engine, sa.text(statement), values)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE actions SET document = :document", id="document"),
        pytest.param("UPDATE actions SET plan = '{}'", id="plan"),
        pytest.param("UPDATE actions SET active = NOT active", id="active"),
        pytest.param("UPDATE actions SET active = NOT active, revision = 7", id="wrong_revision"),
        pytest.param("UPDATE actions SET document = 'x'", id="no_json"),
    ],
)
def test_an_edit_by_sql_is_refused_and_the_command_named(
    engine: sa.Engine, action: Change, statement: str
) -> None:
    values = {"document": DOCUMENT} if ":document" in statement else {}

    with pytest.raises(sa.exc.IntegrityError, match="use `minutebook action apply`"):
        write(engine, statement, **values)

    assert (row(engine, action).revision, row(engine, action).active) == (1, True)


def test_what_decides_nothing_is_written(engine: sa.Engine, action: Change) -> None:
    write(engine, "UPDATE actions SET owner = 'ann', document = document, active = active")

    assert row(engine, action).owner == "ann"


def test_rows_of_a_dump_are_inserted_as_they_are(engine: sa.Engine, action: Change) -> None:
    copy = {**row(engine, action)._mapping, "uid": UUID(int=1), "name": "copy", "revision": 3}
    execute(engine, sa.insert(actions).values({**copy, "plan": action.plan.to_json()}))

    assert fetched(engine, sa.select(sa.func.count()).select_from(actions)).scalar() == 2
