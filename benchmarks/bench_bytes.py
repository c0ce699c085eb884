"""Measure the bytes of an ended operation, with its attempt, its log lines and all indexes.

The operations are recorded, sent, claimed and ended by the real functions, in rounds with a vacuum
after each, as autovacuum does. The step does nothing and logs nothing.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

import sqlalchemy as sa

from benchmarks.filling import MINUTE, analyze, document
from benchmarks.harness import Database, Figure, Sizes, Stack, main
from minutebook.steps import SmallApp
from models.fingerprint import operation_id
from models.operation import by_action
from models.store.operations.record import record_new
from models.tables import operations as table
from runtime.database import reading
from scheduler.changes import Change
from scheduler.changes.change import create_all
from scheduler.changes.validation import ChangeContext
from scheduler.record import ActionRef, operation_row
from scheduler.sweep import dispatch_ready
from tasks.execute import run_attempt
from tasks.registry import Registry, registry_of

STEPS = ("benchmarks.worker_tasks",)
TABLES = ("operations", "attempts", "operation_logs")
WORKER = "quick@worker-1.example.com:12345:12346"
ROUNDS = 20
OF_ONE = 10


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the bytes per operation; on PostgreSQL in detail, by table, index and column."""
    database = stack.empty()
    registry = registry_of(STEPS)
    author = ChangeContext("benchmarks", SmallApp(1, "default", "UTC"), Registry(STEPS).steps)
    when = {"cron_rule": "0 0 1 1 *", "timezone": "UTC"}
    number = max(1, sizes.stored // OF_ONE)
    documents = [document(f"daily report {n}", when, "do_nothing") for n in range(number)]
    made = create_all(database.engine, documents, author)
    before = _size(database)
    size = max(1, number * OF_ONE // ROUNDS)
    for ids in _recorded(database, made, size):
        for id in ids:
            run_attempt(database.engine, database.settings, registry, (id, 1), WORKER)
        stack.flush()
        analyze(database.engine, "operations, attempts, operation_logs")
    stored = database.count("SELECT count(*) FROM operations WHERE state = 'success'")
    assert stored == number * OF_ONE
    taken = (_size(database) - before) / stored
    details = {} if stack.server is None else _details(database, stored)
    stack.drop(database)
    what = f"bytes of an operation, among {stored:,}"
    return [Figure(what, round(taken), "bytes", "600", details)]


def _recorded(database: Database, made: Sequence[Change], size: int) -> Iterator[list[UUID]]:
    """Record and send the operations of all actions in rounds; yield the ids of each."""
    newest = database.now.replace(second=0, microsecond=0)
    rows = [
        operation_row(
            ActionRef(one.uid, 1, one.name, 1),
            one.plan,
            operation_id(one.uid, at),
            at,
            by_action(one.name),
        )
        for at in (newest - back * MINUTE for back in range(OF_ONE))
        for one in made
    ]
    for first in range(0, len(rows), size):
        some = rows[first : first + size]
        with database.engine.begin() as connection:
            record_new(connection, some)
            # Recorded operations are reserved for half a minute.
            connection.exec_driver_sql(
                "UPDATE operations SET not_before = recorded_at WHERE state = 'pending'"
            )
        dispatch_ready(database.engine)
        yield [row["id"] for row in some]


def _size(database: Database) -> int:
    """Return the bytes of the tables with their indexes; on SQLite, of the whole file."""
    if database.engine.dialect.name == "sqlite":
        pages = "SELECT (page_count - freelist_count) * page_size FROM"
        pragmas = "pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
        return database.count(f"{pages} {pragmas}")
    return database.count("SELECT " + " + ".join(f"pg_total_relation_size('{t}')" for t in TABLES))


def _details(database: Database, stored: int) -> dict[str, str]:
    """Return the bytes per operation of each table and index, and of the widest columns."""
    relations = sa.text(
        "SELECT c.relname, pg_relation_size(c.oid) FROM pg_class c LEFT JOIN pg_index i"
        " ON i.indexrelid = c.oid WHERE c.relname = ANY(:names)"
        " OR i.indrelid = ANY(SELECT oid FROM pg_class WHERE relname = ANY(:names)) ORDER BY 2 DESC"
    )
    widths = ", ".join(f"coalesce(avg(pg_column_size({c.name})), 0)" for c in table.columns)
    with reading(database.engine) as connection:
        sizes = connection.execute(relations, {"names": list(TABLES)}).all()
        found = connection.execute(sa.text(f"SELECT {widths} FROM operations")).one()
    by_column = sorted(
        zip(table.columns.keys(), map(float, found), strict=True), key=lambda x: -x[1]
    )
    return {
        "relations": ", ".join(f"{name} {size / stored:.0f}" for name, size in sizes if size),
        "columns": ", ".join(f"{name} {width:.0f}" for name, width in by_column if width),
    }


if __name__ == "__main__":
    main(measure)
