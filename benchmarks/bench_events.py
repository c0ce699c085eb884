"""Measure a tick with many event actions, each with its own delay, and some due users.

Every user was seen once; except for due users, at an instant that no tick asks for.
"""

from collections.abc import Iterator
from datetime import timedelta

import sqlalchemy as sa

from benchmarks.filling import MINUTE, analyze, bulk_insert, instant
from benchmarks.harness import Database, Figure, Sizes, Stack, Stopwatch, main, middle
from minutebook.steps import SmallApp
from models.store import key_values
from models.store.notices.alerting import NO_ALERTS
from models.tables import action_cursor
from models.values.delays import events_due
from models.values.durations import parse_delay
from scheduler.changes.change import create_all
from scheduler.changes.validation import ChangeContext
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tasks.built_in import built_in_steps

DAY = timedelta(days=1)
HOUR_S = 3_600
SEEN = "instance.user.last_seen"


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the times of a tick with `sizes.subjects` due users, and of the next, with none."""
    database = _filled(stack, sizes)
    due, idle = [], []
    for _ in range(sizes.repeats + 1):
        with database.engine.begin() as connection:
            decided = (database.now - MINUTE).isoformat()
            key_values.set_value(connection, key_values.EVENTS_DECIDED, decided)
        due.append(_one_tick(database, sizes.subjects))
        idle.append(_one_tick(database, 0))
        with stack.broker.client() as client:
            assert client.llen("minutebook.quick") == sizes.subjects
        database.forget_operations()
        stack.flush()
    stack.drop(database)
    # A daemon reads the plans of its actions once: no part of a tick's cost.
    del due[0], idle[0]
    what = f"{sizes.event_actions:,} event actions, {sizes.users:,} users"
    return [
        Figure(f"{what}: {sizes.subjects} due", _wall_ms(due), "ms", "300"),
        Figure(f"{what}: {sizes.subjects} due, CPU", _cpu_ms(due), "ms"),
        Figure(f"{what}: the next tick, none due", _wall_ms(idle), "ms"),
    ]


def _wall_ms(watches: list[Stopwatch]) -> float:
    return middle([one.wall_s * 1e3 for one in watches])


def _cpu_ms(watches: list[Stopwatch]) -> float:
    return middle([one.cpu_s * 1e3 for one in watches])


def _filled(stack: Stack, sizes: Sizes) -> Database:
    """Return a database of users and event actions, decided until a minute ago."""
    database = stack.empty()
    database.now = database.clock().replace(second=0, microsecond=0)
    with database.engine.begin() as connection:
        app = connection.execute(sa.text("SELECT id FROM small_apps")).scalar_one()
    delays = [_delay(number) for number in range(sizes.event_actions)]
    bulk_insert(
        database.engine,
        "users",
        "small_app_id id email active created_at activated_at last_seen_at",
        _users(database, sizes, app, list(map(parse_delay, delays))),
    )
    documents = [
        {
            "name": f"after {delay}",
            "operations": {"maintenance": True},
            "when": {"after": SEEN, "delay": delay},
        }
        for delay in delays
    ]
    create_all(database.engine, documents, _author(app))
    tick(
        database.engine,
        database.clock(),
        Sweeper(timedelta(seconds=45), NO_ALERTS),
    )
    with database.engine.begin() as connection:
        began = database.now - DAY
        connection.execute(sa.update(action_cursor).values(effective_from=began))
    analyze(database.engine)
    return database


def _delay(number: int) -> str:
    """Return a unique delay."""
    return f"PT{number + 1}H30S"


def _users(
    database: Database, sizes: Sizes, app: int, delays: list[timedelta]
) -> Iterator[tuple[object, ...]]:
    """Yield users: due ones, and ones seen 25 to 50 minutes before a full hour."""
    then = instant(database.now - 400 * DAY)
    for number in range(sizes.users):
        if number < sizes.subjects:
            delay = delays[number * len(delays) // sizes.subjects]
            happened = events_due(database.now - MINUTE, database.now, delay)
            assert happened is not None
            seen_at = happened[1]
        else:
            hours, seconds = number % (2 * sizes.event_actions), 1_500 + number % 1_500
            seen_at = database.now - timedelta(seconds=hours * HOUR_S + seconds)
        yield app, f"user {number}", None, True, then, then, instant(seen_at)


def _one_tick(database: Database, due: int) -> Stopwatch:
    watch, sweeper = Stopwatch(), Sweeper(timedelta(seconds=45), NO_ALERTS)
    with watch.running():
        report: TickReport = tick(database.engine, database.now, sweeper)
    assert (report.recorded, report.sent, report.missed) == (due, due, 0), report
    return watch


def _author(app: int) -> ChangeContext:
    return ChangeContext("benchmarks", SmallApp(app, "default", "UTC"), built_in_steps())


if __name__ == "__main__":
    main(measure)
