"""A broken value in any column of any row stops at most its own action.

The columns come from the metadata, so that a new one is covered by itself.
"""

import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, zip_longest
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from broker.app import configure
from models.column_types import Number, StorableText, Switch, UTCDateTime, WholeNumber
from models.errors import InvalidAction, Refused
from models.fingerprint import operation_id
from models.operation import OperationState
from models.roles import TokenKind
from models.sql import database_now
from models.store import actions, ticks, tokens
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import pages as operation_pages
from models.store.operations.admission import NotClaimed
from models.store.operations.claims import Claim, claim
from models.store.operations.finish import Ending, end
from models.store.scope import WHOLE_INSTALLATION, Scope
from models.tables import actions as actions_table
from models.tables import metadata
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import change, deletion
from scheduler.changes.change import Changed
from scheduler.explain import explain
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.celery_messages import allowing, celery_action
from tests.factories import (
    STEPS,
    author,
    claimed,
    make_action,
    make_document,
    make_operation,
    row_of,
    yearly,
)
from tests.statements import executed
from views import actions as shown_actions
from views.doctor.database import check_database
from views.operations import readable
from views.status import status_in
from views.tokens import Token, Tokens

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=45)
MOST_OPERATIONS = 2
# The victims' rows here belong to no action of theirs: none is left unread because the other is
# broken. One of their columns is broken beside one of the others.
APART = {
    "app_usage", "domains", "installation", "notices", "small_apps", "ticks", "tokens", "users",
    "workers",
}  # fmt: skip
# One of each for each victim: texts and documents, instants and numbers.
RUBBISH = (
    "",
    None,
    '{"a": [1, {"b": null}], "triggers": 7, "since": 1}',
    "[" * 5_000,
    "9" * 5_000,
    "Mars/Olympus a\x00b\x1b[31m\u202e\n" + "x" * 9_000,
    '"\\ud800 \\u0000"',
    '[1, null, {"name": "publish"}, {"state": 3}]',
    b"\xff\x00",
)
NUMBERS = (
    "",
    None,
    "2026-13-45 99:00:00",
    "infinity",
    "-infinity",
    "NaN",
    "9" * 5_000,
    '{"a": 1}',
    b"\xff\x00",
)
OF_NUMBERS = (UTCDateTime, WholeNumber, Number, Switch, sa.Integer)
Saved = dict[str, list[dict[str, Any]]]
Keys = dict[str, list[list[dict[str, Any]]]]


class Furnished:
    """A database with a healthy action, and for each rubbish a row of every table to break."""

    def __init__(self, engine: sa.Engine, settings: Settings) -> None:
        self.engine, self.settings = engine, settings
        self.keys: Keys = {}
        for number in range(len(RUBBISH)):
            self._furnish(number)
        with engine.connect() as connection:
            first_at = sa.select(sa.func.min(metadata.tables["missed_spans"].c.first_at))
            self.slept: datetime = connection.execute(first_at).scalar_one()
        self.healthy = make_action(engine, name="healthy", since=NOON - MINUTE)
        with engine.connect() as connection:
            self.saved = {
                table.name: [dict(row) for row in connection.execute(table.select()).mappings()]
                for table in metadata.sorted_tables
            }

    def _furnish(self, number: int) -> None:
        name = f"victim {number}"
        clock = make_action(self.engine, name=name, since=NOON - MINUTE)
        event = task = clock
        if number % 3 == 0:
            event = make_action(self.engine, name=f"{name} on events", when={"on": "order.paid"})
        if number % 3 == 1:
            task = celery_action(self.engine, name=f"{name} task", since=NOON - MINUTE)
        with self.engine.begin() as connection:
            for name, row in _rows(number, clock, event, task):
                connection.execute(sa.insert(metadata.tables[name]).values(**row))
            for table in metadata.sorted_tables:
                known = self.keys.setdefault(table.name, [])
                seen = [key for some in known for key in some]
                keys = [dict(row) for row in connection.execute(_keys(table)).mappings()]
                known.append([key for key in keys if key not in seen])

    def restore(self) -> None:
        """Let all rows be as they were."""
        with self.engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(sa.delete(table))
            for table in metadata.sorted_tables:
                if self.saved[table.name]:
                    connection.execute(sa.insert(table), self.saved[table.name])

    def break_rows(self, column: sa.Column[Any]) -> int:
        """Write each rubbish into its rows; return how many the database took."""
        rubbish_of = NUMBERS if isinstance(column.type, OF_NUMBERS) else RUBBISH
        of_victims = zip(self.keys[column.table.name], rubbish_of, strict=True)
        with self.engine.begin() as connection:
            return sum(
                _broken(connection, column, key, rubbish)
                for keys, rubbish in of_victims
                for key in keys
            )

    def rounds(self, is_sqlite: bool) -> Iterator[list[sa.Column[Any]]]:
        """Yield what to break together."""
        read = [
            column
            for column in self.columns_read()
            if is_sqlite or not isinstance(column.type, sa.Text | StorableText)
        ]
        apart = [column for column in read if column.table.name in APART]
        others = [column for column in read if column.table.name not in APART]
        for together in zip_longest(others, apart):
            yield [column for column in together if column is not None]

    def columns_read(self) -> list[sa.Column[Any]]:
        """Return the columns that some statement names: no other can stop anything."""
        with executed(self.engine) as seen:
            self.goes_on()
        self.restore()
        words = [set(re.findall(r"\w+", statement)) for statement in set(seen)]
        return [
            column
            for table in metadata.sorted_tables
            for column in table.c
            if any({table.name, column.name} <= some for some in words)
        ]

    def goes_on(self) -> None:
        """Tick, sweep, run the healthy action's operation, and look at it in all ways."""
        sweeper = Sweeper(LEASE, NO_ALERTS)
        # As after a lease in which all was well.
        sweeper._trusted_from = 0.0
        report = tick(self.engine, NOON, sweeper, steps=STEPS)
        assert report.broker_error is None
        sweeper.sweep(self.engine, send=True)
        self._run_healthy()
        self._look()

    def _run_healthy(self) -> None:
        id = operation_id(self.healthy.uid, NOON)
        with self.engine.begin() as connection:
            assert isinstance(claim(connection, id, 1, "tests", alerts=NO_ALERTS), Claim)
        with self.engine.begin() as connection:
            assert (
                end(connection, id, 1, Ending(OperationState.SUCCESS), alerts=NO_ALERTS).state
                == "success"
            )

    def _look(self) -> None:
        with reading(self.engine) as connection:
            listed = actions.listed(connection, 1)
            shown = {row["name"]: shown_actions.row_of(row, NOON, 3) for row in listed}
            assert shown["healthy"].last_state == "success"
            found = tokens.listed(connection, WHOLE_INSTALLATION, None, 1000)
            Tokens(tuple(Token(**row) for row in found))
            assert not tokens.bearers_of(connection, ["mht_0_x"], TokenKind.TOKEN)
            assert readable(
                operation_pages.page(connection, operation_pages.Wanted(Scope(1)), 1000)
            )
            # Rubbish may have deleted the small app.
            operation_pages.page(connection, operation_pages.Wanted(WHOLE_INSTALLATION), 1000)
            assert status_in(connection, self.settings).actions.total >= 1
            told = explain(self.healthy.uid, NOON, connection, self.settings, steps=STEPS)
            assert told.verdict == "success"
            instants = cycle((self.slept, NOON, NOON - timedelta(hours=1), NOON))
            for row, at in zip(listed, instants, strict=False):
                explain(row["uid"], at, connection, self.settings)
        assert list(check_database(self.engine, self.settings))


def _keys(of: sa.Table) -> sa.Select[Any]:
    return sa.select(*of.primary_key.columns)


def _broken(
    connection: sa.Connection, column: sa.Column[Any], key: dict[str, Any], rubbish: object
) -> int:
    table = column.table
    kind = column.type.dialect_impl(connection.dialect).compile(connection.dialect)
    value = ":rubbish" if connection.dialect.name == "sqlite" else f"CAST(:rubbish AS {kind})"
    its = " AND ".join(f'"{name}" = :{name}' for name in key)
    written = sa.text(f'UPDATE {table.name} SET "{column.name}" = {value} WHERE {its}')
    typed = [sa.bindparam(name, type_=table.c[name].type) for name in key]
    try:
        with connection.begin_nested():
            return connection.execute(
                written.bindparams(*typed), {**key, "rubbish": rubbish}
            ).rowcount
    except (sa.exc.DBAPIError, UnicodeError):
        return 0


def _rows(  # noqa: PLR0915 - a row of each table
    number: int, clock: Changed, event: Changed, task: Changed
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a row of each table that making actions leaves empty."""
    now, old = database_now(), database_now(-7200.0)
    name, ids = f"victim {number}", {key: uuid4() for key in ("op", "snap", "notice", "fill")}
    app = {"small_app_id": 1}
    yield "small_apps", {"name": name, "zone": "UTC", "document": "{}", "created_at": now}
    snapshot = {"path": "x", "row_count": 1, "byte_count": 1, "digest": "x", "figures": {}}
    yield (
        "snapshots",
        {"id": ids["snap"], **app, "domain": name, **snapshot, "validators": {}, "created_at": now},
    )
    yield "domains", {**app, "name": name, "source": "{}", "staging_id": ids["snap"]}
    document = {"kind": "design", "name": name, "staging": "{}", "staged_at": now}
    yield "app_documents", {**app, **document}
    for row in _operations(number, clock, event, task, ids["op"]):
        yield "operations", row
    log = [{"message": "a", "at": "b", "level": "c"}]
    yield "operation_logs", {"operation_id": ids["op"], "lines": log}
    attempt = {"attempt": 1, "worker": "gone", "started_at": old, "state": "running"}
    yield "attempts", {"operation_id": ids["op"], **attempt}
    its = {"action_uid": clock.uid}
    yield "action_state", {**its, "last_state": "failed", "last_run_at": old, "checkpoint": {}}
    span = {"first_at": old, "last_at": old, "count": 1, "reason": "too late", "recorded_at": old}
    yield "missed_spans", {**its, "revision": 1, **span}
    fill = {"since": old, "until": now, "cursor": old, "mode": "all", "state": "active"}
    asked = {"actor": "ann", "not_before": old, "requested_at": old}
    yield "backfills", {"id": ids["fill"], **app, **its, **fill, **asked}
    notice = {"kind": "failure", "target": {"kind": "mail", "to": "a@b.c"}, "payload": {}}
    owed = {"state": "owed", "not_before": old, "created_at": old}
    yield "notices", {"id": ids["notice"], **app, **its, **notice, **owed}
    user = {"email": "a@b.c", "active": True, "created_at": old, "activated_at": old}
    yield "users", {**app, "id": name, **user}
    yield "groups", {**app, "name": name}
    yield "group_members", {**app, "group_name": name, "user_id": name}
    told = {"id": name, "subject": name, "occurred_at": NOON - MINUTE / 2}
    yield "events", {**app, "event": "order.paid", **told}
    yield "templates", {**app, "name": name, "subject": "s", "text": "t"}
    mail = {"address": "a@b.c", "message_id": "m", "state": "sent", "updated_at": old}
    yield "deliveries", {"operation_id": ids["op"], "step": "s", "recipient": "r", **mail}
    report = {"daemon": "d:1", "now": old, "finished_at": old, "duration_ms": 1.0, "report": {}}
    yield "ticks", report
    worker = {"queues": "quick", "pid": 1, "started_at": old, "seen_at": now, "skew_s": 0.0}
    yield "workers", {"name": name, **worker, "follows": ["shop.*"], "step_failures": {"m": "e"}}
    token = {"role": "admin", "hash": name, "created_at": old, "created_by": "ann"}
    yield "tokens", {"id": name, **token}
    yield "audit", {"at": old, "actor": "a", "verb": "v", "object": "o", "details": {}}
    yield "installation", {"key": name, "value": "x"}


def _operations(
    number: int, clock: Changed, event: Changed, task: Changed, first: UUID
) -> Iterator[dict[str, Any]]:
    """Yield operations in all the states that a tick and a sweep look at."""
    old = database_now(-7200.0)
    common = {
        "small_app_id": 1, "action_uid": clock.uid, "revision": 1, "queue": "quick",
        "task": "execute_scheduled_action_quick", "triggerer": 'Scheduled action "x"',
        "recorded_at": old, "not_before": old, "subject": None, "overlap_key": None,
        "steps": [{"name": "maintenance", "state": "running", "repeatable": True}],
    }  # fmt: skip
    running = {"state": "running", "worker": "gone", "heartbeat_at": old, "started_at": old}
    theirs = {"action_uid": task.uid, "task": "shop.tasks.close_day", "queue": "celery"}
    waits = {"state": "pending", "waiting_for": first}
    ended = {"state": "failed", "finished_at": old, "error": "e", "result": {"a": 1}}
    states: list[dict[str, Any]] = [
        {**running, "first_started_at": old},
        {"state": "pending"},
        {"state": "queued", "queued_at": old},
        waits,
        ended,
        {"state": "pending", "handing_at": old, "in_doubt": "leave", **theirs},
        {"state": "pending", "in_doubt": "leave", **theirs},
        {"state": "pending", "action_uid": event.uid, "subject": "ann", "event_id": "e"},
    ]
    # Each victim has two of them: together they are in every state.
    for turn in range(number, number + MOST_OPERATIONS):
        at = NOON - timedelta(hours=turn % len(states) + 1)
        id = first if turn == number else uuid4()
        yield {**common, "occurrence_at": at, **states[turn % len(states)], "id": id}


@pytest.fixture
def furnished(engine: sa.Engine, settings: Settings) -> Iterator[Furnished]:
    """A furnished database, with the daemon's log off: it names thousands of broken rows."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    configure(allowing(settings, "shop.*"))
    yield Furnished(engine, settings)
    configure(settings)
    logging.disable(before)


@pytest.mark.usefixtures("broker")
def test_no_row_stops_what_is_not_its_own(furnished: Furnished) -> None:
    """A text reads the same from both databases: PostgreSQL's are of types that it checks."""
    told, taken = {}, 0
    is_sqlite = furnished.engine.dialect.name == "sqlite"
    for together in furnished.rounds(is_sqlite):
        broken = sum(map(furnished.break_rows, together))
        if not broken:
            continue
        taken += broken
        try:
            furnished.goes_on()
        except Exception as error:
            named = " or ".join(map(str, together))
            told[named] = f"{type(error).__name__}: {str(error)[:200]}"
        furnished.restore()

    assert not told, "\n".join(f"{one}: {why}" for one, why in told.items())
    assert taken > (300 if is_sqlite else 50)


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_operations_of_an_action_that_a_hand_deleted_stop_nothing(furnished: Furnished) -> None:
    operations = metadata.tables["operations"]
    with furnished.engine.begin() as connection:
        orphans = sa.update(operations).values(action_uid=operations.c.id)
        assert connection.execute(orphans).rowcount > len(RUBBISH)

    furnished.goes_on()


FACTS = (ticks.LAST_NOW, ticks.CLOCK_SET_BACK, ticks.DOWNTIME, ticks.EVENTS_DECIDED)


@pytest.mark.usefixtures("broker")
def test_no_fact_of_the_installation_stops_anything(furnished: Furnished) -> None:
    told = {}
    for rubbish in (one for one in RUBBISH if isinstance(one, str) and one):
        with furnished.engine.begin() as connection:
            for key in FACTS:
                ticks.set_fact(connection, key, rubbish)
        try:
            furnished.goes_on()
        except Exception as error:
            told[rubbish[:20]] = f"{type(error).__name__}: {str(error)[:200]}"
        furnished.restore()

    assert not told, "\n".join(f"{one}: {why}" for one, why in told.items())


MARS = '"zone":"Mars/Olympus"'
MARTIAN = {"cron_rule": "0 7 * * *", "timezone": "Mars/Olympus"}


@pytest.fixture
def broken(engine: sa.Engine) -> Changed:
    """An action whose plan is broken and whose document was changed, beside a healthy one."""
    broken = make_action(engine, name="broken", since=NOON - MINUTE)
    make_action(engine, name="healthy", since=NOON - MINUTE)
    with engine.begin() as connection:
        its = sa.update(actions_table).where(actions_table.c.uid == broken.uid)
        plan = broken.plan.to_json().replace('"zone":"UTC"', MARS)
        document = json.dumps(make_document(name="broken", when=MARTIAN))
        text = sa.text("UPDATE actions SET plan = :plan WHERE uid = :uid")
        uid = sa.bindparam("uid", type_=actions_table.c.uid.type)
        connection.execute(text.bindparams(uid), {"plan": plan, "uid": broken.uid})
        connection.execute(its.values(document=document))
    return broken


def test_a_broken_plan_under_a_broken_edit_stops_no_other_action(
    engine: sa.Engine, broken: Changed
) -> None:
    first = tick(engine, NOON, Sweeper(LEASE, NO_ALERTS), steps=STEPS)
    second = tick(engine, NOON + MINUTE, Sweeper(LEASE, NO_ALERTS), steps=STEPS)

    assert (first.recorded, first.set_aside, second.recorded) == (1, 1, 1)
    with reading(engine) as connection:
        [one] = actions.set_aside_actions(connection)
    assert (one["name"], "Mars/Olympus" in one["set_aside"]) == ("broken", True)


@pytest.mark.parametrize("ticked", [False, True], ids=["before_a_tick", "after_a_tick"])
def test_a_broken_action_is_paused_repaired_and_deleted(
    engine: sa.Engine, broken: Changed, ticked: bool
) -> None:
    if ticked:
        tick(engine, NOON, Sweeper(LEASE, NO_ALERTS), steps=STEPS)

    change.set_active(engine, broken.uid, active=False, author=author())
    paused = _standing(engine, broken)
    with pytest.raises(InvalidAction, match="Mars/Olympus"):
        change.set_active(engine, broken.uid, active=True, author=author())
    [repaired] = change.apply_all(engine, [make_document(name="broken")], author())
    sound = _standing(engine, broken)
    deletion.delete(engine, broken.uid, author())

    assert (paused["active"], paused["set_aside"] is None) == (False, False)
    assert (repaired.uid, sound["active"], sound["set_aside"]) == (broken.uid, True, None)
    with reading(engine) as connection:
        assert [row["name"] for row in actions.listed(connection, 1)] == ["healthy"]


@pytest.mark.parametrize("document", ["", "{nothing", "[" * 5_000], ids=["empty", "text", "deep"])
def test_an_action_without_a_document_is_paused_repaired_and_deleted(
    engine: sa.Engine, broken: Changed, document: str
) -> None:
    with engine.begin() as connection:
        its = sa.update(actions_table).where(actions_table.c.uid == broken.uid)
        connection.execute(its.values(document=document))

    change.set_active(engine, broken.uid, active=False, author=author())
    with pytest.raises(Refused, match="cannot be read; apply a valid one"):
        change.set_active(engine, broken.uid, active=True, author=author())
    # Nothing becomes due while the test runs.
    repaired = make_document(name="broken", when=yearly(NOON))
    change.apply_all(engine, [repaired], author())

    assert _standing(engine, broken)["set_aside"] is None
    assert deletion.delete(engine, broken.uid, author()) == 0


def test_an_operation_whose_plan_is_broken_fails_and_says_so(engine: sa.Engine) -> None:
    action = make_action(engine)
    id = make_operation(engine, action, NOON)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE revisions SET plan = '{'"))

    assert claimed(engine, id) is NotClaimed.BROKEN

    row = row_of(engine, id)
    assert (row["state"], row["reason"]) == ("failed", "broken plan")
    assert row["error"].startswith("the stored plan cannot be read: ")


def _standing(engine: sa.Engine, action: Changed) -> dict[str, Any]:
    with reading(engine) as connection:
        return actions.find(connection, 1, str(action.uid), WHOLE_INSTALLATION)
