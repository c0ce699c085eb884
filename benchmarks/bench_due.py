"""Measure a tick with many due actions, until all are recorded and sent, and a bare Celery loop.

The bare loop calls `apply_async` for the same number of ids, in the same run, and records nothing.
"""

import cProfile
import gc
import pstats
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

from celery import Celery

from benchmarks.filling import park, release
from benchmarks.harness import Database, Figure, Sizes, Stack, Stopwatch, main, middle, timed
from models.store.notices.alerting import NO_ALERTS
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick

# The phases of a tick: their functions, by file and name.
PHASES = {
    "claim and read the cursors": ("cursors.py", "claim_due"),
    "read the plans": ("plan.py", "from_json"),
    "decide": ("decision.py", "decide"),
    "record the operations": ("record.py", "record"),
    "overtake older ones": ("record.py", "overtake"),
    "move the cursors": ("cursors.py", "advance"),
    "publish to the broker": ("app.py", "_flush"),
    "mark as queued": ("reserve.py", "mark_sent"),
    "commit": ("default.py", "do_commit"),
    "sweep": ("sweep.py", "sweep"),
}
LEASE = timedelta(seconds=45)
QUEUE = "minutebook.quick"


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the times of a tick with `sizes.due` due, of the bare loop, and a profile."""
    database = stack.filled(sizes.actions, sizes.many_due)
    settle()
    ours, bare, logged = [], [], []

    def counting(act: Callable[[], TickReport]) -> TickReport:
        before = _logged(database)
        report = act()
        logged.append(_logged(database) - before)
        return report

    for _ in range(sizes.repeats):
        bare.append(timed(lambda: _send_bare(stack.broker.url, sizes.due)))
        stack.flush()
        ours.append(one_tick(stack, database, sizes.due, counting))
    profile = cProfile.Profile()
    one_tick(stack, database, sizes.due, profile.runcall)
    wall, cpu = middle([one.wall_s for one in ours]), middle([one.cpu_s for one in ours])
    loop, loop_cpu = middle([one.wall_s for one in bare]), middle([one.cpu_s for one in bare])
    # Of each round: other processes on the machine slow both.
    times = middle([other.wall_s / own.wall_s for own, other in zip(ours, bare, strict=True)])
    what = f"{sizes.due:,} due among {sizes.actions:,}"
    figures = [
        Figure(f"{what}: all recorded and sent", wall, "s", "1.6", {"profile": _phases(profile)}),
        Figure(f"{what}: CPU of the daemon", cpu, "s"),
        Figure(f"bare loop of apply_async, {sizes.due:,} ids", loop, "s"),
        Figure("bare loop, times as long as ours", times, "x", "5"),
        Figure("bare loop, times our CPU", round(loop_cpu / cpu, 3), "x"),
    ]
    if stack.server is not None:
        each = round(middle(logged) / sizes.due / 1000, 2)
        figures.append(Figure(f"{what}: log of writes (WAL) for each", each, "kB"))
    return figures


def settle() -> None:
    """Collect garbage as the daemon does at its start."""
    gc.set_threshold(50_000)
    gc.collect()
    gc.freeze()


def _logged(database: Database) -> int:
    """Return the bytes that PostgreSQL has written to its log of writes; 0 on SQLite."""
    if database.engine.dialect.name == "sqlite":
        return 0
    return database.count("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")


def one_tick(
    stack: Stack,
    database: Database,
    due: int,
    run: Callable[[Callable[[], TickReport]], TickReport] = lambda act: act(),
    then: Callable[[], object] = lambda: None,
) -> Stopwatch:
    """Return the time of one tick that records and sends `due` operations; then remove them.

    Before that, `then` is called.
    """
    uids = database.due[:due]
    release(database.engine, uids, database.now)
    watch, sweeper = Stopwatch(), Sweeper(LEASE, NO_ALERTS)
    with watch.running():
        report = run(lambda: tick(database.engine, database.now, sweeper))
    with stack.broker.client() as client:
        assert (report.recorded, report.sent, client.llen(QUEUE)) == (due, due, due)
    then()
    park(database.engine, uids)
    database.forget_operations()
    stack.flush()
    return watch


def _send_bare(url: str, number: int) -> None:
    app = Celery("bare", broker=url)

    @app.task(name="bare", shared=False)
    def bare(id: str, attempt: int) -> None:
        """Do nothing."""

    ids = [str(uuid4()) for _ in range(number)]
    for id in ids:
        bare.apply_async((id, 1), task_id=id)
    app.close()


def _phases(profile: cProfile.Profile) -> dict[str, str]:
    """Return the share of each phase in the profiled time; profiling slows Python's part."""
    stats = pstats.Stats(profile)
    total: float = stats.total_tt  # type: ignore[attr-defined]
    spent = {
        (key[0].rsplit("/", 1)[-1], key[2]): row[3]
        for key, row in stats.stats.items()  # type: ignore[attr-defined]
    }
    return {what: f"{spent.get(key, 0.0) / total:.0%}" for what, key in PHASES.items()}


if __name__ == "__main__":
    main(measure)
