"""Pruned operations are never decided again; others stay within every look-back."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from models.errors import InvalidAction
from models.operation import OperationState
from models.sql import read_clock
from models.store import retention
from models.tables import operations
from scheduler.changes import Done, change, editing
from services.installation import Installation
from tests.factories import (
    DEFAULT_APP,
    author,
    make_action,
    make_document,
    make_operation,
    rows_of,
    update_operation,
)
from tests.servers import Broker
from tests.ticks import MINUTE, run_tick
from tests.transactions import clock_of

AGE = 45 * MINUTE
LIVED = 90


@pytest.mark.parametrize(("back", "catch_up"), [(6, "latest"), (45, "latest"), (44, "all")])
def test_after_pruning_and_a_clock_set_back_nothing_is_sent_a_second_time(
    engine: sa.Engine, broker: Broker, back: int, catch_up: str
) -> None:
    """A minute's operations as they age: `recorded_at` is set to when they would have been."""
    now = clock_of(engine).replace(second=0, microsecond=0)
    policy = {"catch_up": catch_up, "look_back": "PT45M", "overlap": "allow"}
    action = make_action(engine, policy=policy, since=now - LIVED * MINUTE)
    for minute in range(LIVED, -1, -3):
        run_tick(engine, now - minute * MINUTE)
        end_all(engine)
    sent = broker.messages("quick")
    pruned = prune(engine, now)

    for minute in range(back, -1, -1):
        run_tick(engine, now - minute * MINUTE)
        end_all(engine)

    again = broker.messages("quick")
    assert pruned > 10
    assert len(set(again)) == len(again)
    assert set(sent) <= set(again)
    occurrences = [row["occurrence_at"] for row in rows_of(engine, action)]
    assert min(occurrences) >= now - AGE - MINUTE


def end_all(engine: sa.Engine) -> None:
    """End what was sent, and age every row to its occurrence."""
    aged = dict.fromkeys(("recorded_at", "finished_at"), operations.c.occurrence_at)
    running = sa.update(operations).where(operations.c.state == "queued")
    owner = {"worker": "w", "heartbeat_at": operations.c.recorded_at}
    with engine.begin() as connection:
        connection.execute(running.values(state=OperationState.RUNNING, **owner))
        ended = sa.update(operations).where(operations.c.state == OperationState.RUNNING)
        connection.execute(ended.values(state=OperationState.SUCCESS))
        connection.execute(sa.update(operations).values(aged))


def prune(engine: sa.Engine, now: datetime) -> int:
    """Prune as if it were `now`: the database's clock went on while the test lived."""
    with engine.begin() as connection:
        age = AGE + (read_clock(connection) - now)
        return retention.prune_operations(connection, DEFAULT_APP.id, age, 10_000)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_what_is_being_retried_is_not_pruned(engine: sa.Engine) -> None:
    old = datetime(2026, 1, 5, 7, tzinfo=UTC)
    id = make_operation(engine, make_action(engine), old)
    update_operation(engine, id, state="failed", recorded_at=old, finished_at=old)
    with engine.begin() as retrying:
        its = sa.select(operations.c.id).where(operations.c.id == id)
        retrying.execute(its.with_for_update())
        pruned = [prune(engine, old + 2 * AGE)]
    pruned.append(prune(engine, old + 2 * AGE))

    assert pruned == [0, 1]


def test_a_look_back_longer_than_history_is_kept_is_refused(engine: sa.Engine) -> None:
    document = make_document(policy={"look_back": "P10D"})

    with pytest.raises(InvalidAction) as refusal:
        change.apply_all(engine, [document], author(kept_for=timedelta(days=9)))
    assert str(refusal.value) == (
        "policy.look_back 'P10D': is longer than runs are kept; write \"P9D\" or less, or set"
        " SCHED_RETENTION_OPERATIONS_DAYS to 10 or more"
    )
    (stored,) = change.apply_all(engine, [document], author(kept_for=timedelta(days=10)))
    # It can still be paused.
    shorter = author(kept_for=timedelta(days=9))
    paused = editing.set_active(engine, stored.uid, active=False, author=shorter)
    assert paused.change is Done.CHANGED


def test_the_command_line_takes_the_setting(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("retention: {operations_days: 7}")

    assert Installation(tmp_path).author.kept_for == timedelta(days=7)
