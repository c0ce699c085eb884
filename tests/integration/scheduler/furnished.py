"""A database with a row of every table, to break them one by one."""

import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product
from logging.handlers import BufferingHandler
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa
from prometheus_client import CollectorRegistry

from data.store import tables as _tables_of_data  # noqa: F401 - its rows are broken too
from models.errors import NotFound
from models.fingerprint import operation_id
from models.sql import database_now
from models.store import actions, bearers, key_values, measures
from models.store.actions.search import ActionFilter
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import eta
from models.store.scope import WHOLE_INSTALLATION
from models.tables import action_cursor, metadata
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import Change
from scheduler.explain import explain
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from services import apps, audit, jobs, metrics, operations, users
from services.actions import search
from services.doctor.database import check_database
from services.operations.filter import OperationFilter
from services.overview import overview_of
from services.status import status
from services.tokens import list_tokens
from services.upcoming import show
from tests.celery_messages import celery_action
from tests.factories import installation_on, make_action, row_of
from tests.integration.scheduler.rubbish import Cell, Key, cells_of, write
from tests.integration.tasks.crew import Work
from tests.statements import executed
from tests.ticks import LEASE, MINUTE
from tests.transactions import act, fetched
from web.counters import Counters

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
ONE = NOON + timedelta(hours=1)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}
MOST_OPERATIONS, STATES = 2, 8
# Each has one broken value at a time, so that no value hides the effect of another.
VICTIMS = 40
MOST = 1_000


class Furnished:
    """A database with a healthy action, and victims: each has a row of every table to break."""

    def __init__(self, engine: sa.Engine, settings: Settings, victims: int = VICTIMS) -> None:
        self.engine, self.settings = engine, settings
        # What a whole part of a tick or a sweep says when it fails: the daemon goes on without it.
        self.log = BufferingHandler(1_000_000)
        self.log.setLevel(logging.ERROR)
        self.installation = installation_on(engine, settings)
        # Maintenance keeps rows for an hour.
        kept = settings.retention.model_copy(update={"operations_days": 1 / 24, "snapshots": 0})
        self.work = Work(engine, settings.model_copy(update={"retention": kept}))
        # By victim and table. What was there before is no victim's.
        self.keys: list[dict[str, list[Key]]] = []
        known = self._present()
        for number in range(victims):
            self._furnish(number)
            here = self._present()
            its = {name: [key for key in here[name] if key not in known[name]] for name in here}
            self.keys.append(its)
            known = here
        self.healthy = make_action(engine, name="healthy", since=NOON - MINUTE)
        # The last tick came an hour ahead.
        act(engine, key_values.set_value, key_values.LAST_NOW, ONE.isoformat())
        self.saved = {
            table.name: [dict(row) for row in fetched(engine, table.select()).mappings()]
            for table in metadata.sorted_tables
        }

    def _present(self) -> dict[str, list[Key]]:
        keys = {table.name: sa.select(*table.primary_key) for table in metadata.sorted_tables}
        found = {name: fetched(self.engine, query).mappings() for name, query in keys.items()}
        return {name: [dict(row) for row in rows] for name, rows in found.items()}

    def _furnish(self, number: int) -> None:
        name = f"victim {number}"
        clock = make_action(self.engine, name=name, when=HOURLY, since=NOON - MINUTE)
        event = task = clock
        if number % 3 == 0:
            event = make_action(self.engine, name=f"{name} on events", when={"on": _event(number)})
        if number % 3 == 1:
            task = celery_action(self.engine, name=f"{name} task", since=NOON - MINUTE)
        with self.engine.begin() as connection:
            for table, row in _rows(number, clock, event, task):
                connection.execute(sa.insert(metadata.tables[table]).values(**row))
            if _is_ahead(number):
                its = action_cursor.c.action_uid == clock.uid
                connection.execute(sa.update(action_cursor).where(its).values(watermark=ONE))

    def restore(self) -> None:
        """Let all rows be as they were."""
        with self.engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(sa.delete(table))
            for table in metadata.sorted_tables:
                if self.saved[table.name]:
                    connection.execute(sa.insert(table), self.saved[table.name])

    def rounds(self, columns: list[sa.Column[Any]]) -> Iterator[list[tuple[int, Cell]]]:
        """Break one value of each victim, and yield which, until all were broken that can be."""
        dialect = self.engine.dialect.name
        cells = iter([cell for column in columns for cell in cells_of(column, dialect)])
        while broken := self._break_next(cells):
            yield broken

    def _break_next(self, cells: Iterator[Cell]) -> list[tuple[int, Cell]]:
        with self.engine.begin() as connection:
            taken = (
                (victim, next((one for one in cells if self._break(connection, victim, one)), None))
                for victim in range(len(self.keys))
            )
            return [(victim, cell) for victim, cell in taken if cell is not None]

    def _break(self, connection: sa.Connection, victim: int, cell: Cell) -> bool:
        """Write rubbish into all of a victim's rows; return whether the database took it."""
        keys = self.keys[victim][cell.column.table.name]
        return sum(write(connection, cell, key) for key in keys) > 0

    def columns_read(self) -> list[sa.Column[Any]]:
        """Return the columns that some statement names: no other can stop anything."""
        with executed(self.engine) as seen:
            assert self.goes_on().clock_set_back_s == 3600
        self.restore()
        words = [set(re.findall(r"\w+", statement)) for statement in set(seen)]
        return [
            column
            for table in metadata.sorted_tables
            for column in table.c
            if any({table.name, column.name} <= some for some in words)
        ]

    def stopped(self) -> str | None:
        """Return what is raised while all goes on, or None; then all rows are as they were."""
        try:
            self.goes_on()
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:200]}"
        finally:
            self.log.flush()
            self.restore()
        return None

    def goes_on(self) -> TickReport:
        """Look at everything, tick and sweep, and let the healthy action run its maintenance."""
        self._look()
        sweeper = Sweeper(LEASE, NO_ALERTS)
        # As after a lease in which all was well.
        sweeper._trusted_from = 0.0
        report = tick(self.engine, NOON, sweeper)
        assert report.broker_error is None
        given_up = [one for one in self.log.buffer if str(one.msg).endswith("tries again")]
        assert not given_up, given_up[0].exc_info
        id = operation_id(self.healthy.uid, NOON)
        # A broken snapshot is told.
        end = self.work.attempt(id)
        assert end in {"success", "partial"}, row_of(self.engine, id)["error"]
        self._look_at_healthy(end)
        return report

    def _look(self) -> None:
        """Read what commands and pages show of all rows."""
        seen = self.installation
        listed = search.list_actions(seen, ActionFilter(), MOST, all_apps=True).items
        assert "healthy" in {one.name for one in listed}
        operations.list_operations(seen, OperationFilter(), MOST, all_apps=True)
        assert status(seen).actions.total >= 1
        assert list(check_database(self.engine, self.settings))
        overview_of(seen)
        metrics.quick_samples(seen)
        metrics.slow_samples(seen)
        with reading(self.engine) as connection:
            long = timedelta(days=10_000)
            ended = measures.ended(connection, NOON - long, NOON + long)
        Counters(CollectorRegistry(), 0.0).add(metrics.Lately(NOON, ended, {}))
        apps.list_apps(seen, MOST)
        jobs.list_jobs(seen, MOST)
        users.list_users(seen, MOST)
        audit.list_entries(seen, MOST, None)
        list_tokens(seen, MOST)

    def look_at(self, victim: int) -> None:
        """Read the pages of a victim: its action and its operations."""
        seen = self.installation
        show(seen, f"victim {victim}")
        for key in self.keys[victim]["operations"]:
            with suppress(NotFound):
                operations.show(seen, str(key["id"]))
                operations.log(seen, str(key["id"]))

    def explain(self, victim: int) -> None:
        """Explain what became of a victim's occurrences, and estimate when its operations end."""
        keys = self.keys[victim]
        instants = (NOON, *(NOON - _hours_back(victim + n) for n in range(MOST_OPERATIONS)))
        with reading(self.engine) as connection:
            for key, at in product(keys["actions"], instants):
                with suppress(NotFound):
                    explain(key["uid"], at, connection, self.settings)
            for key in keys["operations"]:
                eta.estimate(connection, key["id"])

    def _look_at_healthy(self, end: str) -> None:
        with reading(self.engine) as connection:
            row = actions.find(connection, 1, "healthy", WHOLE_INSTALLATION)
            assert row["last_state"] == end
            told = explain(self.healthy.uid, NOON, connection, self.settings)
            assert told.verdict == end
            assert bearers.bearer_of(connection, "mbt_0_x") is None


def _is_ahead(number: int) -> bool:
    """Return whether a victim was decided beyond noon, while the clock was ahead."""
    return number % 4 == 1


def _hours_back(turn: int) -> timedelta:
    return timedelta(hours=turn % STATES + 1)


def _event(number: int) -> str:
    """Return the event of a victim: one of three has an action on the event of all three."""
    return f"order.paid{number // 3}"


Rows = Iterator[tuple[str, dict[str, Any]]]
OF_APP = {"small_app_id": 1}


def _rows(number: int, clock: Change, event: Change, task: Change) -> Rows:
    """Yield a row of each table that making actions leaves empty."""
    operation = uuid4()
    yield from _rows_of_app(f"victim {number}", _event(number))
    for row in _operations(number, clock, event, task, operation):
        yield "operations", row
    yield from _rows_of_operation(operation)
    yield from _rows_of_action(number, clock.uid, operation)
    yield from _rows_of_installation(f"victim {number}")


def _rows_of_app(name: str, event: str) -> Rows:
    now, old, snapshot = database_now(), database_now(-7200.0), uuid4()
    yield "small_apps", {"name": name, "zone": "UTC", "document": "{}", "created_at": now}
    file = {"path": "x", "row_count": 1, "byte_count": 1, "digest": "x", "figures": {}}
    its = {"id": snapshot, **OF_APP, "domain": name}
    yield "snapshots", {**its, **file, "validators": {}, "created_at": now}
    yield "domains", {**OF_APP, "name": name, "source": "{}", "staging_id": snapshot}
    document = {"kind": "design", "name": name, "staging": "{}"}
    yield "app_documents", {**OF_APP, **document}
    user = {"email": "a@b.c", "active": True, "created_at": old, "activated_at": old}
    yield "users", {**OF_APP, "id": name, **user}
    yield "groups", {**OF_APP, "name": name}
    yield "group_members", {**OF_APP, "group_name": name, "user_id": name}
    told = {"id": name, "subject": name, "occurred_at": NOON - MINUTE / 2}
    yield "events", {**OF_APP, "event": event, **told}
    yield "templates", {**OF_APP, "name": name, "subject": "s", "text": "t"}


def _rows_of_operation(id: UUID) -> Rows:
    old = database_now(-7200.0)
    log = [{"message": "a", "at": "b", "level": "c"}]
    yield "operation_logs", {"operation_id": id, "lines": log}
    attempt = {"attempt": 1, "worker": "gone", "started_at": old, "state": "running"}
    yield "attempts", {"operation_id": id, **attempt}
    mail = {"address": "a@b.c", "message_id": "m", "state": "sent", "updated_at": old}
    yield "deliveries", {"operation_id": id, "step": "s", "recipient": "r", **mail}


def _rows_of_action(number: int, uid: UUID, operation: UUID) -> Rows:
    now, old, its = database_now(), database_now(-7200.0), {"action_uid": uid}
    yield "action_state", {**its, "last_state": "failed", "last_run_at": old, "checkpoint": {}}
    first, last = (NOON, NOON + MINUTE) if _is_ahead(number) else (old, old)
    span = {"first_at": first, "last_at": last, "count": 1, "reason": "too late"}
    yield "missed_spans", {**its, "revision": 1, **span, "recorded_at": old}
    fill = {"since": old, "until": now, "mode": "all", "state": "active"}
    asked = {"actor": "ann", "not_before": old, "requested_at": old}
    yield "backfills", {"id": uuid4(), **OF_APP, **its, **fill, **asked}
    notice = {"kind": "run_ended", "target": {"kind": "mail", "to": "a@b.c"}, "payload": {}}
    owed = {"state": "owed", "not_before": old, "created_at": old}
    yield "notices", {"id": uuid4(), **OF_APP, **its, **notice, **owed}
    end_of = {**its, "operation_id": operation, "state": "failed"}
    yield "action_ends", {**end_of, **OF_APP, "ended_at": old}


def _rows_of_installation(name: str) -> Rows:
    now, old = database_now(), database_now(-7200.0)
    report = {"daemon": "d:1", "now": old, "finished_at": old, "duration_ms": 1.0, "report": {}}
    yield "ticks", report
    worker = {"queues": "quick", "pid": 1, "started_at": old, "seen_at": now, "skew_s": 0.0}
    yield "workers", {"name": name, **worker, "follows": ["shop.*"], "step_failures": {"m": "e"}}
    token = {"role": "admin", "hash": name, "created_at": old, "created_by": "ann"}
    yield "tokens", {"id": name, **token}
    yield "audit", {"at": old, "actor": "a", "verb": "v", "object": "o", "details": {}}
    yield "installation", {"key": name, "value": "x"}


def _operations(
    number: int, clock: Change, event: Change, task: Change, first: UUID
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
        {"state": "queued", "sent_at": old},
        waits,
        ended,
        {"state": "pending", "send_started_at": old, **theirs},
        {"state": "pending", **theirs},
        {"state": "pending", "action_uid": event.uid, "subject": "ann", "event_id": "e"},
    ]
    # Each victim has two of them: together they are in every state.
    for turn in range(number, number + MOST_OPERATIONS):
        id = first if turn == number else uuid4()
        yield {
            **common,
            "occurrence_at": NOON - _hours_back(turn),
            **states[turn % STATES],
            "id": id,
        }
