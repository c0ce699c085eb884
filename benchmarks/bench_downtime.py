"""Measure the first tick after a month of downtime, and check its missed count.

The check lists the occurrences of each rule; the tick does not.
"""

from collections import Counter
from datetime import timedelta
from uuid import UUID

from benchmarks.bench_due import settle
from benchmarks.harness import Database, Figure, Sizes, Stack, main, timed
from models.action.plan import Plan
from scheduler.loop import Daemon
from scheduler.occurrence import next_occurrence
from tasks.built_in import built_in_steps

MONTH = timedelta(days=31)


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the seconds of the first tick; raises if its count is not exact."""
    database = stack.filled(sizes.slept, sizes.slept // 1000, behind=MONTH, is_parked=False)
    daemon = Daemon(database.engine, database.settings, steps=built_in_steps())
    daemon.prepare()
    settle()
    at = database.now
    watch = timed(lambda: daemon.tick_once(at))
    expected = _occurrences(database)
    named = database.count("SELECT count(*) FROM operations")
    spans = database.count("SELECT coalesce(sum(count), 0) FROM missed_spans")
    assert named + spans == expected, (named, spans, expected)
    stack.drop_filled()
    what = f"first tick after a month, {sizes.slept:,} actions"
    details = {"occurrences": f"{expected:,}", "rows": f"{named:,}", "counts": "exact"}
    return [
        Figure(f"{what}: wall", round(watch.wall_s, 3), "s", "12", details),
        Figure(f"{what}: CPU", round(watch.cpu_s, 3), "s"),
    ]


def _occurrences(database: Database) -> int:
    """Return how many occurrences all actions had in the month, one by one."""
    with database.engine.connect() as connection:
        # The small app's default action is as old as this run.
        filled = "SELECT plan, count(*) FROM actions WHERE name <> 'maintenance' GROUP BY plan"
        rows = connection.exec_driver_sql(filled)
        plans = Counter({row[0]: row[1] for row in rows})
    return sum(number * _walked(Plan.from_json(text), database) for text, number in plans.items())


def _walked(plan: Plan, database: Database) -> int:
    at, walked = database.now - MONTH, 0
    while (found := next_occurrence(plan, UUID(int=0), at)) and found <= database.now:
        at, walked = found, walked + 1
    return walked


if __name__ == "__main__":
    main(measure)
