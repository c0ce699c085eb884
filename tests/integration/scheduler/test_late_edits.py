"""A daemon with an old `now` adopts an edit by plain SQL after another daemon has decided."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.store.notices.alerting import NO_ALERTS
from models.tables import action_cursor, actions, revisions
from runtime.database import reading
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import STEPS, cursor_of, make_action, make_document, rows_of

SEVEN = datetime(2027, 1, 4, 7, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVERY_TWO = {"cron_rule": "*/2 * * * *", "timezone": "UTC"}


def edit(engine: sa.Engine, uid: Any, edited_at: datetime, document: dict[str, Any]) -> None:
    """Edit a document by plain SQL, at an instant."""
    with engine.begin() as connection:
        changed = sa.update(actions).where(actions.c.uid == uid)
        connection.execute(changed.values(document=json.dumps(document)))
        cursor = sa.update(action_cursor).where(action_cursor.c.action_uid == uid)
        connection.execute(cursor.values(edited_at=edited_at))


def taken_over(engine: sa.Engine, uid: Any) -> datetime:
    """Return the instant from which the newest revision holds."""
    query = sa.select(revisions.c.effective_from).where(revisions.c.action_uid == uid)
    with reading(engine) as connection:
        newest = query.order_by(revisions.c.number.desc()).limit(1)
        at: datetime = connection.execute(newest).scalar_one()
        return at


def test_a_revision_made_by_plain_sql_holds_from_the_edit_on_not_from_the_tick(
    engine: sa.Engine,
) -> None:
    action = make_action(engine, when=EVERY_TWO, since=SEVEN)
    edited_at = SEVEN + timedelta(seconds=30)
    edit(engine, action.uid, edited_at, make_document())

    tick(engine, SEVEN + MINUTE, Sweeper(MINUTE, NO_ALERTS), steps=STEPS)

    assert taken_over(engine, action.uid) == edited_at


def test_a_frozen_daemon_that_takes_over_an_edit_runs_no_minute_from_before_it(
    engine: sa.Engine,
) -> None:
    action = make_action(engine, when=EVERY_TWO, since=SEVEN)
    decided = SEVEN + timedelta(minutes=3)
    tick(engine, decided, Sweeper(MINUTE, NO_ALERTS), steps=STEPS)
    edit(engine, action.uid, decided + timedelta(seconds=10), make_document())

    tick(engine, SEVEN + timedelta(seconds=10), Sweeper(MINUTE, NO_ALERTS), steps=STEPS)
    tick(engine, SEVEN + timedelta(minutes=4), Sweeper(MINUTE, NO_ALERTS), steps=STEPS)

    assert taken_over(engine, action.uid) == decided
    found = [row["occurrence_at"] for row in rows_of(engine, action)]
    assert found == [SEVEN + timedelta(minutes=2), SEVEN + timedelta(minutes=4)]
    assert cursor_of(engine, action)["watermark"] == SEVEN + timedelta(minutes=4)
