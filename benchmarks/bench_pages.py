"""Measure the pages of the dashboard, served by one real web process from a large database.

Each page is asked for one at a time. Its time is that of the whole request; its size is without
compression, which is left to a proxy.
"""

from time import perf_counter
from uuid import UUID

import httpx
import sqlalchemy as sa

from benchmarks.filling import Filling, analyze, fill_actions
from benchmarks.harness import Database, Figure, Sizes, Stack, main, percentile
from benchmarks.http import Server, web_process
from models.store import ticks

# Each operation is of one of so many actions: those of a page have a long history.
BUSY = 1_000
# Of a thousand operations so many failed.
FAILED = 3
BATCH = 100_000
# Of an operation that a worker ended.
STEPS = '[["maintenance","success",null,null]]'


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return how long each page takes, and how large it is."""
    database = stack.empty()
    uids = fill_actions(database.engine, Filling(sizes.paged_actions, database.now, due=1))
    _fill_operations(database, sizes.paged_operations)
    with database.engine.begin() as connection:
        ticks.report(connection, "benchmarks", database.now, 5.0, {"recorded": 1})
    analyze(database.engine)
    with web_process(database, SCHED_LOG_LEVEL="WARNING") as server:
        found = _pages(database, server, uids[0], sizes.page_loads)
    stack.drop(database)
    return found


def _fill_operations(database: Database, number: int) -> None:
    """Record operations of the last days, one each second, by a statement for each batch."""
    is_postgresql = database.engine.dialect.name == "postgresql"
    statement = sa.text(_recording(is_postgresql))
    with database.engine.begin() as connection:
        if is_postgresql:
            # Neither triggers nor foreign keys: each would ask once for each row.
            connection.execute(sa.text("SET LOCAL session_replication_role = replica"))
            connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
        # By its key, so that no planner compares each operation with each action.
        connection.execute(
            sa.text("CREATE TEMPORARY TABLE busy (place INTEGER PRIMARY KEY, uid VARCHAR(36))")
        )
        chosen = "SELECT uid FROM actions ORDER BY uid LIMIT :busy"
        ranked = f"SELECT row_number() OVER (ORDER BY uid) - 1, uid FROM ({chosen}) AS chosen"
        connection.execute(sa.text(f"INSERT INTO busy {ranked}"), {"busy": BUSY})
        for first in range(0, number, BATCH):
            span = {"first": first + 1, "last": min(number, first + BATCH), "busy": BUSY}
            connection.execute(statement, span)
        # Each of them knows its last run, which is none that failed.
        known = "last_state, last_run_at, last_success_at, run_number"
        its_last = "'success', max(finished_at), max(finished_at), count(*)"
        connection.execute(
            sa.text(
                f"INSERT INTO action_state (action_uid, {known})"
                f" SELECT action_uid, {its_last} FROM operations GROUP BY action_uid"
            )
        )


def _recording(is_postgresql: bool) -> str:
    """Return the statement that records the operations of `first` to `last` seconds ago."""
    if is_postgresql:
        numbers = "generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS n(i)"
        at, id = "statement_timestamp() - make_interval(secs => n.i)", "gen_random_uuid()"
        uid = "CAST(busy.uid AS uuid)"
    else:
        numbers = (
            "(WITH RECURSIVE c(i) AS (SELECT :first UNION ALL SELECT i + 1 FROM c"
            " WHERE i < :last) SELECT i FROM c) AS n"
        )
        at = "strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || n.i || ' seconds')"
        part = "substr(x, {}, {})"
        cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        id = " || '-' || ".join(part.format(*cut) for cut in cuts).replace(
            "x", "printf('%032x', n.i)"
        )
        uid = "busy.uid"
    failed = f"n.i % 1000 < {FAILED}"
    return (
        "INSERT INTO operations (id, small_app_id, action_uid, revision, occurrence_at, state,"
        " cause, triggerer, queue, task, recorded_at, not_before, sent_at, first_started_at,"
        " started_at, finished_at, worker, steps, error)"
        f" SELECT {id}, 1, {uid}, 1, {at}, CASE WHEN {failed} THEN 'failed' ELSE 'success' END,"
        f" 'schedule', 'benchmarks', 'quick', 'run', {at}, {at}, {at}, {at}, {at}, {at}, 'w',"
        f" '{STEPS}',"
        f" CASE WHEN {failed} THEN 'no' END"
        # In this order: SQLite would make the numbers anew for each action.
        f" FROM {numbers} CROSS JOIN busy WHERE busy.place = n.i % CAST(:busy AS integer)"
    )


def _pages(database: Database, server: Server, uid: UUID, loads: int) -> list[Figure]:
    with database.engine.begin() as connection:
        busy, id = connection.execute(
            sa.text("SELECT action_uid, id FROM operations ORDER BY recorded_at DESC LIMIT 1")
        ).one()
    pages = {
        "overview": "/",
        "actions": "/actions",
        "actions, a search": "/actions?q=action+77",
        "an action without history": f"/apps/default/actions/{uid}",
        "an action with history": f"/apps/default/actions/{busy}",
        "runs": "/operations",
        "a run": f"/operations/{id}",
        "health": "/health",
        "actions that need attention": "/actions?standing=troubled",
        "the form of an action": f"/apps/default/actions/{busy}/edit",
        "small apps": "/apps",
        "a small app": "/apps/default",
    }
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as client:
        own = {"Sec-Fetch-Site": "same-origin"}
        client.post("/sign-in", data={"token": server.token}, headers=own)
        return [
            figure for name, path in pages.items() for figure in _page(client, name, path, loads)
        ]


def _page(client: httpx.Client, name: str, path: str, loads: int) -> list[Figure]:
    took = []
    for _ in range(loads):
        began = perf_counter()
        answer = client.get(path)
        took.append((perf_counter() - began) * 1e3)
        answer.raise_for_status()
    return [
        Figure(f"page, {name}: p50", percentile(took, 50), "ms"),
        Figure(f"page, {name}: p95", percentile(took, 95), "ms", "100"),
        Figure(f"page, {name}: size", round(len(answer.content) / 1e3, 1), "kB"),
    ]


if __name__ == "__main__":
    main(measure)
