"""What a tick reads of the actions that are due."""

import json
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from models.store.actions import cursors, set_aside
from models.store.notices.alerting import NO_ALERTS
from models.tables import action_cursor, actions
from scheduler.changes.change import Changed
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import STEPS, cursor_of, make_action, make_document

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def due(engine: sa.Engine, name: str) -> Changed:
    """An action that a tick has scheduled, so that the tick at NOON finds it due."""
    action = make_action(engine, name=name, since=NOON - 2 * MINUTE)
    tick(engine, NOON - MINUTE, Sweeper(MINUTE, NO_ALERTS), STEPS)
    return action


def test_only_documents_that_may_have_been_edited_are_read(engine: sa.Engine) -> None:
    unchanged, edited, quarantined = (due(engine, name) for name in ("one", "two", "three"))
    document = json.dumps(make_document(name="edited"))
    with engine.begin() as connection:
        change = sa.update(actions).where(actions.c.uid == edited.uid)
        connection.execute(change.values(document=document))
        set_aside(connection, quarantined.uid, "no reason")
        rows = cursors.claim_due(connection, NOON, 10)
        read = {row.action_uid: row.document for row in rows}

    assert read[unchanged.uid] is None
    assert read[edited.uid] == document
    assert read.get(quarantined.uid, "") is not None


def test_a_cursor_that_moves_on_has_no_pending_edit(engine: sa.Engine) -> None:
    action = make_action(engine)
    edited = sa.update(action_cursor).where(action_cursor.c.action_uid == action.uid)
    with engine.begin() as connection:
        connection.execute(edited.values(edited_at=NOON))
        move = {"action_uid": action.uid, "watermark": NOON, "next_occurrence_at": NOON + MINUTE}
        cursors.advance(connection, [move])

    assert cursor_of(engine, action)["edited_at"] is None
