"""Stored plans of `celery_task` lose the time limit that their admins did not write."""

import json
from dataclasses import replace
from datetime import timedelta

import sqlalchemy as sa
from alembic import command

from models.action.plan import Plan
from models.action.policy import NO_TIME_LIMIT
from models.celery_task import HandOver
from models.store.schema import _config, migrate

LAST = "0003_pre_what_steps_do"
AT = "2026-11-01 00:00:00.000000"
LIMIT = timedelta(seconds=30)
OURS = Plan(active=True, triggers=(), is_heavy=False, queue="quick", time_limit=LIMIT)
THEIRS = replace(OURS, hand_over=HandOver("shop.close_day", kwargs={"shop": "Zürich"}))


def store(connection: sa.Connection, number: int, document: str, plan: Plan) -> None:
    """Store an action and its revision as the last release did."""
    app = connection.execute(sa.text("SELECT id FROM small_apps")).scalar_one()
    uid = f"00000000-0000-4000-8000-{number:012}"
    values = {"uid": uid, "app": app, "name": str(number), "document": document, "at": AT}
    connection.execute(
        sa.text(
            "INSERT INTO actions (uid, small_app_id, name, active, document, document_hash, plan,"
            " revision, created_at, updated_at)"
            " VALUES (:uid, :app, :name, true, :document, 'x', :plan, 1, :at, :at)"
        ),
        {**values, "plan": plan.to_json()},
    )
    connection.execute(
        sa.text(
            "INSERT INTO revisions (action_uid, number, document, plan, author, effective_from)"
            " VALUES (:uid, 1, :document, :plan, 'x', :at)"
        ),
        {**values, "plan": plan.to_json()},
    )


def test_the_default_is_taken_from_tasks_alone(empty: sa.Engine) -> None:
    written = json.dumps({"policy": {"time_limit": "PT30S"}})
    stored = {1: ("{}", THEIRS), 2: (written, THEIRS), 3: ("{}", OURS), 4: ("{", THEIRS)}
    with empty.begin() as connection:
        command.upgrade(_config(connection), LAST)
        for number, (document, plan) in stored.items():
            store(connection, number, document, plan)

    migrate(empty)

    expected = [replace(THEIRS, time_limit=NO_TIME_LIMIT), THEIRS, OURS, THEIRS]
    with empty.connect() as connection:
        for table, key in (("actions", "uid"), ("revisions", "action_uid")):
            columns = sa.table(table, sa.column("plan"), sa.column(key))
            query = sa.select(columns.c.plan).order_by(columns.c[key])
            plans = connection.execute(query).scalars()
            assert [Plan.from_json(plan) for plan in plans] == expected
