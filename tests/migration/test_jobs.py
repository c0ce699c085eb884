"""Actions that are the work of jobs get the ids of these by the migration."""

from dataclasses import replace

import sqlalchemy as sa
from alembic import command

from models.job import Job, id_of
from models.store.schema import _config, migrate
from models.tables import actions
from tests.migration.test_time_limits import OURS, store

LAST = "0018_pre_look_ups"
URL = "https://example.com/feed"


def test_each_stored_job_is_found_by_its_id(empty: sa.Engine) -> None:
    job = '{"operations": {"job": {}}}'
    with empty.begin() as connection:
        command.upgrade(_config(connection), LAST)
        store(connection, 1, job, replace(OURS, job=Job(URL)))
        store(connection, 2, job, OURS)
        store(connection, 3, job, replace(OURS, job=Job(URL)))
        broken = sa.text("UPDATE actions SET plan = 'x' WHERE name = '3'")
        connection.execute(broken)

    migrate(empty)

    with empty.connect() as connection:
        found = connection.execute(sa.select(actions.c.name, actions.c.job_id)).all()
    assert {row.name: row.job_id for row in found} == {"1": id_of(URL), "2": None, "3": None}
