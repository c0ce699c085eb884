"""Measure what a long history costs: the same work without operations, and among millions.

PostgreSQL only: 1,000,000 actions, and operations as they are stored after their end, recorded one
after the other over the last days. Each act is measured in both databases of one run.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from time import perf_counter
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from benchmarks.filling import analyze, park, release
from benchmarks.harness import Database, Figure, Sizes, Stack, main, middle
from models.store import retention
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import pages
from models.store.scope import Scope
from runtime.database import reading
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tasks.execute import run_attempt
from tasks.registry import registry_of

STEPS = ("benchmarks.worker_tasks",)
LEASE = timedelta(seconds=45)
BATCH = 500
BATCHES = 40
PAGE = 50
LOADS = 20
# Recorded evenly over so many days, of which the first has to go.
DAYS = 10
FILL = 250_000
RECORD = """
INSERT INTO operations (id, small_app_id, action_uid, revision, occurrence_at, state, cause,
  triggerer, queue, task, overlap_key, attempt, sendings, recorded_at, not_before, sent_at,
  first_started_at, started_at, heartbeat_at, finished_at, worker, steps, progress, result)
SELECT gen_random_uuid(), 1, one.uid, 1, at, 'success', 'schedule',
  'Scheduled action "' || one.name || '"', 'quick', 'execute_scheduled_action_quick',
  one.uid, 1, 1, at, at, at, at, at, at, at, 'quick@worker-1.example.com:123:124',
  CAST('[["do_nothing","success",1795401600123456,2000]]' AS json),
  1, CAST('{"do_nothing":{}}' AS json)
FROM (
  SELECT n, statement_timestamp() - make_interval(secs => n * :gap_s) AS at
  FROM generate_series(CAST(:last AS bigint), CAST(:first AS bigint), -1) AS n
) AS numbered
JOIN busy AS one ON one.place = n % CAST(:busy AS bigint)
"""


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the time of each act without and with the history, and their ratio."""
    if stack.server is None:
        return [Figure("a long history: measured on PostgreSQL alone", 0, "-")]
    database = stack.filled(sizes.actions, sizes.many_due)
    _do_nothing(database)
    acts = _acts(stack, database, sizes)
    without = {what: act() for what, act in acts.items()}
    began = perf_counter()
    _fill(database, sizes.long_history)
    filled_s = perf_counter() - began
    figures = [Figure("a long history: filled and vacuumed", round(filled_s, 1), "s")]
    for what, act in acts.items():
        took = act()
        ratio = {"times without a history": f"{took / max(without[what], 1e-9):.2f}"}
        figures.append(
            Figure(f"among {sizes.long_history:,}: {what}", round(took, 3), "ms", "", ratio)
        )
    figures += _prune(database, sizes)
    stack.drop_filled()
    return figures


def _do_nothing(database: Database) -> None:
    """Let the due actions do nothing: their own step would prune the history."""
    statement = (
        "UPDATE revisions SET document = replace(document, 'maintenance', 'do_nothing')"
        " WHERE action_uid = ANY(:uids)"
    )
    with database.engine.begin() as connection:
        connection.execute(sa.text(statement), {"uids": database.due})


def _acts(stack: Stack, database: Database, sizes: Sizes) -> dict[str, Callable[[], float]]:
    every = pages.Wanted(Scope(1))
    failed = pages.Wanted(Scope(1), state=["failed"])
    return {
        "an idle tick": lambda: _each(LOADS, lambda: _tick(database)),
        f"a tick with {sizes.due:,} due": lambda: _busy_tick(stack, database, sizes.due),
        "an operation on a worker": lambda: _worked(stack, database, sizes.messages),
        "a page of runs": lambda: _each(LOADS, lambda: _page(database, every)),
        "a page of failed runs": lambda: _each(3, lambda: _page(database, failed)),
    }


def _each(number: int, act: Callable[[], Any]) -> float:
    return middle([_ms(act) for _ in range(number)])


def _ms(act: Callable[[], Any]) -> float:
    began = perf_counter()
    act()
    return (perf_counter() - began) * 1e3


def _tick(database: Database) -> Any:
    return tick(database.engine, database.now, Sweeper(LEASE, NO_ALERTS))


def _busy_tick(stack: Stack, database: Database, due: int) -> float:
    uids = database.due[:due]
    release(database.engine, uids, database.now)
    took = _ms(lambda: _tick(database))
    park(database.engine, uids)
    _forget(database, uids)
    stack.flush()
    return took


def _worked(stack: Stack, database: Database, number: int) -> float:
    """Return the milliseconds of an operation from its claim to its end, in this process."""
    uids = database.due[:number]
    release(database.engine, uids, database.now)
    _tick(database)
    with database.engine.begin() as connection:
        query = sa.text("SELECT id FROM operations WHERE state = 'queued'")
        ids: Sequence[UUID] = [UUID(str(one)) for one in connection.execute(query).scalars()]
    assert len(ids) == number
    registry = registry_of(STEPS)
    took = [
        _ms(lambda id=id: run_attempt(database.engine, database.settings, registry, (id, 1), "w:1"))  # type: ignore[misc]
        for id in ids
    ]
    park(database.engine, uids)
    _forget(database, uids)
    stack.flush()
    return middle(took)


def _forget(database: Database, uids: Sequence[UUID]) -> None:
    """Remove what an act recorded: all that is not of the history."""
    with database.engine.begin() as connection:
        new = "(SELECT id FROM operations WHERE action_uid = ANY(:uids))"
        for table in ("operation_logs", "attempts"):
            connection.execute(
                sa.text(f"DELETE FROM {table} WHERE operation_id IN {new}"), {"uids": list(uids)}
            )
        connection.execute(
            sa.text("DELETE FROM operations WHERE action_uid = ANY(:uids)"), {"uids": list(uids)}
        )


def _page(database: Database, wanted: pages.Wanted) -> None:
    with reading(database.engine) as connection:
        pages.page(connection, wanted, PAGE)


def _fill(database: Database, number: int) -> None:
    """Record the history, the oldest first, as it comes to be."""
    gap_s = timedelta(days=DAYS).total_seconds() / number
    with database.engine.begin() as connection:
        connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
        connection.execute(
            sa.text(
                "CREATE TABLE busy AS SELECT row_number() OVER () - 1 AS place, uid, name"
                " FROM actions WHERE NOT uid = ANY(:due)"
            ),
            {"due": database.due},
        )
        connection.execute(sa.text("CREATE UNIQUE INDEX busy_place ON busy (place)"))
        connection.execute(sa.text("ANALYZE busy"))
        busy = connection.execute(sa.text("SELECT count(*) FROM busy")).scalar_one()
    for last in range(number, 0, -FILL):
        with database.engine.begin() as connection:
            # Without triggers and foreign keys, each of which would ask once for each row.
            connection.execute(sa.text("SET LOCAL session_replication_role = replica"))
            connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
            span = {"last": last, "first": max(1, last - FILL + 1), "gap_s": gap_s, "busy": busy}
            connection.execute(sa.text(RECORD), span)
    analyze(database.engine, "operations")


def _prune(database: Database, sizes: Sizes) -> list[Figure]:
    """Prune the oldest operations in batches, as maintenance does, and vacuum."""
    age = timedelta(days=DAYS - 1)
    began, pruned = perf_counter(), 0
    for _ in range(BATCHES):
        with database.engine.begin() as connection:
            pruned += retention.prune_operations(connection, 1, age, BATCH)
    pruned_s = perf_counter() - began
    vacuumed = _ms(lambda: analyze(database.engine, "operations"))
    what = f"among {sizes.long_history:,}"
    return [
        Figure(f"{what}: operations pruned", round(pruned / pruned_s), "rows/s"),
        Figure(f"{what}: vacuum after {pruned:,} of them", round(vacuumed / 1e3, 2), "s"),
    ]


if __name__ == "__main__":
    main(measure)
