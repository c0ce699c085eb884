"""What 0.1.0 stored of hooks, and did not call, is called after the migration."""

import json

import sqlalchemy as sa
from alembic import command

from models.action.plan import HookPlan, Plan, Target, hooks_of, read_plan
from models.store.schema import _config, migrate

HOOKS = {
    "on_success": [{"webhook": "https://example.com/done"}],
    "on_failure": [{"mail": "ann@example.com"}],
}
PLAN = Plan(active=True, triggers=(), is_heavy=False, queue="quick")
FIRST = "0001_pre_first_schema"
AT = "2026-11-01 00:00:00.000000"


def plan_of_the_first_release() -> str:
    """Return a plan as 0.1.0 wrote it: without hooks."""
    return PLAN.to_json().replace(',"hooks":null', "")


def at_first_release(engine: sa.Engine, documents: dict[str, str]) -> None:
    """Make the first release's schema, with an action of each document."""
    with engine.begin() as connection:
        command.upgrade(_config(connection), FIRST)
        app = connection.execute(sa.text("SELECT id FROM small_apps")).scalar_one()
        for number, (name, document) in enumerate(documents.items()):
            uid = f"00000000-0000-4000-8000-{number:012}"
            values = {"uid": uid, "app": app, "name": name, "document": document, "at": AT}
            connection.execute(
                sa.text(
                    "INSERT INTO actions (uid, small_app_id, name, active, document, "
                    "document_hash, plan, revision, created_at, updated_at) VALUES "
                    "(:uid, :app, :name, true, :document, 'x', :plan, 1, :at, :at)"
                ),
                values | {"plan": plan_of_the_first_release()},
            )
            connection.execute(
                sa.text(
                    "INSERT INTO revisions (action_uid, number, document, plan, author, "
                    "effective_from) VALUES (:uid, 1, :document, :plan, 'x', :at)"
                ),
                {**values, "plan": plan_of_the_first_release()},
            )


def test_stored_hooks_are_in_the_plans(empty: sa.Engine) -> None:
    documents = {
        "with": json.dumps({"hooks": HOOKS}),
        "when": json.dumps({"hooks": {**HOOKS, "alert_after": 7}}),
        "without": json.dumps({"name": "without"}),
        "broken": '{"hooks": [}',
    }
    at_first_release(empty, documents)

    migrate(empty)

    query = sa.text(
        "SELECT actions.name, actions.plan, revisions.plan AS recorded FROM actions "
        "JOIN revisions ON revisions.action_uid = actions.uid"
    )
    with empty.connect() as connection:
        found = {row.name: row for row in connection.execute(query)}
    expected = HookPlan(
        (Target("webhook", "https://example.com/done"),), (Target("mail", "ann@example.com"),)
    )
    assert hooks_of(read_plan(found["with"].plan)) == expected
    assert hooks_of(read_plan(found["with"].recorded)) == expected
    told = hooks_of(read_plan(found["when"].plan))
    assert told is not None
    assert told.alert_after == 7
    assert hooks_of(read_plan(found["without"].plan)) is None
    assert found["broken"].plan == plan_of_the_first_release()
    assert Plan.from_json(found["with"].plan).triggers == PLAN.triggers
