"""Actions are changed at the instant of a tick: no minute is eaten, none runs from the past."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from models.tables import actions, revisions
from scheduler.changes.change import create_all
from tests.acceptance.editor import WHO, due_at_each_tick
from tests.acceptance.installation import Installation
from tests.acceptance.judgement import violations
from tests.acceptance.processes import Process, python, until
from tests.factories import make_document

EDITOR = str(Path(__file__).with_name("editor.py"))
ROUNDS = 2
ACTIONS = 16


def start_editors(installation: Installation) -> list[Process]:
    """Let two processes edit the same actions at the next ticks."""
    documents = [due_at_each_tick(f"due {n}") for n in range(ACTIONS)]
    create_all(installation.engine, documents, WHO)
    return [
        installation.processes.start(f"editor-{kind}", python(EDITOR, kind, str(ROUNDS)))
        for kind in ("ours", "sql")
    ]


def test_edits_at_the_instant_of_a_tick_leave_each_occurrence_one_outcome_by_one_revision(
    installation: Installation,
) -> None:
    small = {"SCHED_SCHEDULER_BATCH_SIZE": "5"}
    daemons = [installation.daemon(small), installation.daemon(small)]
    for daemon in daemons:
        daemon.said("tick ")

    editors = start_editors(installation)
    ended = [editor.ended() for editor in editors]
    edited_until = installation.now()
    until(
        lambda: any(tick["now"] > edited_until for tick in installation.ticks()),
        "a tick after the edits",
    )

    assert ended == [0, 0], [editor.text() for editor in editors]
    assert violations(installation) == []
    assert {tick["report"].get("set_aside") for tick in installation.ticks()} == {None}
    assert [daemon.text().count("database unavailable") for daemon in daemons] == [0, 0]


@pytest.mark.parametrize("store", ["postgresql"])
def test_an_edit_by_sql_of_an_action_that_a_tick_takes_over_is_no_deadlock(
    installation: Installation,
) -> None:
    """The edit holds the action and wants its cursor, the tick has it the other way round."""
    action = installation.action(operations={"maintenance": True})
    row = sa.update(actions).where(actions.c.uid == action.uid)
    with installation.engine.begin() as connection:
        connection.execute(row.values(active=False))

    document = json.dumps(make_document(name=action.name, description="the second edit"))
    with installation.engine.begin() as editor:
        editor.execute(row.values(owner="somebody"))
        daemon = installation.daemon()
        until(lambda: has_waited(installation) or bool(installation.ticks()), "the tick meets it")
        editor.execute(row.values(document=document, active=True))

    daemon.said("tick ", times=2)
    with installation.engine.connect() as connection:
        newest = sa.select(revisions.c.author, revisions.c.document).order_by(
            revisions.c.number.desc()
        )
        by, stored = connection.execute(newest.limit(1)).one()
    assert (by, json.loads(stored)["description"]) == ("plain SQL", "the second edit")
    assert "database unavailable" not in daemon.text()


def has_waited(installation: Installation) -> bool:
    """Whether a session has waited for a lock longer than PostgreSQL takes to see a deadlock."""
    waits = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND statement_timestamp() - query_start > :long"
    )
    with installation.engine.connect() as connection:
        return bool(connection.execute(waits, {"long": timedelta(seconds=1.5)}).scalar_one())
