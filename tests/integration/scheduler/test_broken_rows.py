"""A broken value in any column of any row stops at most its own action.

The columns come from the metadata, so that a new one is covered by itself.
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from broker.app import configure
from models.errors import InvalidAction
from models.store import actions, key_values
from models.store.operations.start_checks import NotClaimed
from models.store.scope import WHOLE_INSTALLATION
from models.tables import actions as actions_table
from models.tables import installation, metadata
from runtime.config import Settings
from scheduler.changes import Change, change, deletion, editing
from tests.celery_messages import allowing
from tests.factories import (
    author,
    claimed,
    make_action,
    make_document,
    make_operation,
    row_of,
    spoil,
)
from tests.integration.scheduler.furnished import NOON, Furnished
from tests.integration.scheduler.rubbish import RUBBISH, refused_in, write
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, execute

FEW = 8
# What the pages of an action and of an operation list, and what an explanation reads.
LISTED = ("operations", "backfills", "attempts", "notices", "operation_logs", "deliveries")
EXPLAINED = (
    *("actions", "revisions", "action_cursor", "operations", "attempts", "missed_spans"),
    *("ticks", "workers", "installation", "small_apps"),
)


@pytest.fixture
def furnished(engine: sa.Engine, settings: Settings) -> Iterator[Furnished]:
    with unlogged(Furnished(engine, settings)) as made:
        yield made


@pytest.fixture
def few(engine: sa.Engine, settings: Settings) -> Iterator[Furnished]:
    with unlogged(Furnished(engine, settings, FEW)) as made:
        yield made


@contextmanager
def unlogged(made: Furnished) -> Iterator[Furnished]:
    """Keep the daemon's log, which names thousands of broken rows, from the test's."""
    logger = logging.getLogger("minutebook")
    configure(allowing(made.settings, "shop.*"))
    logger.addHandler(made.log)
    logger.propagate = False
    yield made
    logger.propagate = True
    logger.removeHandler(made.log)
    configure(made.settings)


def test_the_database_refuses_what_a_column_does_not_hold(few: Furnished) -> None:
    columns = [column for table in metadata.sorted_tables for column in table.c]
    refused = [cell for column in columns for cell in refused_in(column)]
    with few.engine.begin() as connection:
        taken = [str(cell) for cell in refused if write(connection, cell, {})]

    assert taken == []
    assert len(refused) > 1_000


@pytest.mark.usefixtures("broker")
def test_no_row_stops_what_is_not_its_own(furnished: Furnished) -> None:
    told: dict[str, str] = {}
    taken = 0
    for broken in furnished.rounds(furnished.columns_read()):
        taken += len(broken)
        why = furnished.stopped()
        if why is not None:
            told[" or ".join(str(cell) for _, cell in broken)] = why

    assert not told, "\n".join(f"{one}: {why}" for one, why in told.items())
    assert taken > (350 if furnished.engine.dialect.name == "sqlite" else 150)


@pytest.mark.parametrize(
    ("settings", "tables", "read"),
    [
        ("sqlite", LISTED, Furnished.look_at),
        ("sqlite", EXPLAINED, Furnished.explain),
        ("postgresql", EXPLAINED, Furnished.explain),
    ],
    ids=["pages", "explanations", "explanations_of_postgresql"],
    indirect=["settings"],
)
def test_what_cannot_be_read_is_left_out_where_it_is_shown(
    furnished: Furnished, tables: tuple[str, ...], read: Callable[[Furnished, int], None]
) -> None:
    told: dict[str, str] = {}
    columns = [column for name in tables for column in metadata.tables[name].c]
    for broken in furnished.rounds(columns):
        for victim, cell in broken:
            try:
                read(furnished, victim)
            except Exception as error:
                told[str(cell)] = f"{type(error).__name__}: {str(error)[:200]}"
        furnished.restore()

    assert not told, "\n".join(f"{one}: {why}" for one, why in told.items())


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_operations_of_an_action_that_a_hand_deleted_stop_nothing(few: Furnished) -> None:
    operations = metadata.tables["operations"]
    with few.engine.begin() as connection:
        orphans = sa.update(operations).values(action_uid=operations.c.id)
        assert connection.execute(orphans).rowcount > FEW

    few.goes_on()


FACTS = (
    key_values.LAST_NOW,
    key_values.CLOCK_SET_BACK,
    key_values.DOWNTIME,
    key_values.EVENTS_DECIDED,
)


@pytest.mark.usefixtures("broker")
def test_no_fact_of_the_installation_stops_anything(few: Furnished) -> None:
    told = {}
    for rubbish in (one for one in RUBBISH if isinstance(one, str) and one):
        with few.engine.begin() as connection:
            for key in FACTS:
                key_values.set_value(connection, key, rubbish)
        why = few.stopped()
        if why is not None:
            told[rubbish[:20]] = why

    assert not told, "\n".join(f"{one}: {why}" for one, why in told.items())


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_last_tick_that_no_store_would_write_is_replaced(engine: sa.Engine) -> None:
    run_tick(engine)
    is_last = installation.c.key == key_values.LAST_NOW
    raw = sa.literal("a\0b", sa.Text)
    execute(engine, sa.update(installation).where(is_last).values(value=raw))

    report = run_tick(engine)

    assert act(engine, key_values.instant_value, key_values.LAST_NOW) == report.now


MARTIAN = {"cron_rule": "0 7 * * *", "timezone": "Mars/Olympus"}


@pytest.fixture
def broken(engine: sa.Engine) -> Change:
    """An action whose zone this release does not know, beside a healthy one."""
    broken = make_action(engine, name="broken", since=NOON - MINUTE)
    make_action(engine, name="healthy", since=NOON - MINUTE)
    with engine.begin() as connection:
        plan = broken.plan.to_json().replace("UTC", "Mars/Olympus")
        document = json.dumps(make_document(name="broken", when=MARTIAN))
        values = {"plan": sa.literal(plan, sa.Text), "document": document}
        spoil(connection, actions_table.c.uid == broken.uid, **values)
    return broken


@pytest.mark.parametrize("ticked", [False, True], ids=["before_a_tick", "after_a_tick"])
def test_a_broken_action_is_repaired_and_deleted(
    engine: sa.Engine, broken: Change, ticked: bool
) -> None:
    if ticked:
        run_tick(engine, NOON)

    for active in (False, True):
        with pytest.raises(InvalidAction, match="Mars/Olympus"):
            editing.set_active(engine, broken.uid, active=active, author=author())
    mended = make_document(name="broken", active=True)
    [repaired] = change.apply_all(engine, [mended], author())
    sound = act(engine, actions.find, 1, str(broken.uid), WHOLE_INSTALLATION)
    deletion.delete(engine, broken.uid, author())

    assert (repaired.uid, sound["active"], sound["quarantined"]) == (broken.uid, True, None)
    assert [row["name"] for row in act(engine, actions.listed, 1)] == ["healthy"]


def test_an_operation_whose_plan_is_broken_fails_and_says_so(engine: sa.Engine) -> None:
    action = make_action(engine)
    id = make_operation(engine, action, NOON)
    execute(engine, sa.text("UPDATE revisions SET plan = '{}'"))

    assert claimed(engine, id) is NotClaimed.BROKEN

    row = row_of(engine, id)
    assert (row["state"], row["reason"]) == ("failed", "broken plan")
    assert row["error"].startswith("the stored plan cannot be read: ")
