"""Compare a tick with many due actions with the least that the same servers take for its writes.

The limit writes once more what the tick wrote, in the same run: the operations at once with the
moved cursors, in one transaction; the messages in one round trip; and one statement that marks
them. It decides nothing, looks for no duplicate and checks nothing, and what it writes is in the
form of the drivers before the time is taken.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.bench_due import QUEUE, one_tick, settle
from benchmarks.harness import Database, Figure, Sizes, Stack, Stopwatch, main, middle

# What a tick writes when it records an operation.
_NAMES = (
    *("id", "small_app_id", "action_uid", "revision", "occurrence_at", "cause", "triggerer"),
    *("queue", "task", "overlap_key", "recorded_at", "not_before"),
)
FIELDS = ", ".join((*_NAMES, "state"))
RECORDED = f"SELECT {', '.join(_NAMES)}, 'pending' FROM operations"
CURSORS = "SELECT action_uid, watermark, next_occurrence_at FROM action_cursor WHERE action_uid IN"
MARK = "state = 'queued', sendings = 1, sent_at = recorded_at, not_before = not_before"


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the times of a tick and of the limit, and the ratio of each round."""
    database = stack.filled(sizes.actions, sizes.many_due)
    settle()
    limits: list[Stopwatch] = []
    ticks = [
        one_tick(
            *(stack, database, sizes.due),
            then=lambda: limits.append(_time_of_limit(stack, database)),
        )
        for _ in range(sizes.repeats)
    ]
    what = f"{sizes.due:,} due among {sizes.actions:,}"
    times = [own.wall_s / least.wall_s for own, least in zip(ticks, limits, strict=True)]
    return [
        Figure(f"{what}: the limit of the servers", middle([one.wall_s for one in limits]), "s"),
        Figure(
            f"{what}: times the limit", middle(times), "x", "1.6" if stack.server is None else "2"
        ),
    ]


def _time_of_limit(stack: Stack, database: Database) -> Stopwatch:
    """Return the time of writing once more what the tick wrote."""
    watch = Stopwatch()
    with database.engine.connect() as connection, stack.broker.client() as client:
        raw: Any = connection.connection.driver_connection
        prepared = _on_postgresql if connection.dialect.name == "postgresql" else _on_sqlite
        record, mark = prepared(raw)
        texts = client.lrange(QUEUE, 0, -1)
        client.delete(QUEUE)
        database.forget_operations()
        push = partial(client.lpush, QUEUE, *texts)
        with watch.running():
            for write in (record, raw.commit, push, mark, raw.commit):
                write()
        assert client.llen(QUEUE) == len(texts)
    return watch


def _on_postgresql(raw: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return what records the operations of the tick, and what marks them."""
    cursor = raw.cursor()
    with cursor.copy(f"COPY ({RECORDED}) TO STDOUT") as copy:
        rows = b"".join(copy)
    ids = _column(cursor, "SELECT id FROM operations")
    cursors = [
        _column(cursor, f"SELECT {name} FROM ({CURSORS} (SELECT action_uid FROM operations)) AS c")
        for name in ("action_uid", "watermark", "next_occurrence_at")
    ]
    raw.commit()

    def record() -> None:
        with cursor.copy(f"COPY operations ({FIELDS}) FROM STDIN") as copy:
            copy.write(rows)
        cursor.execute(
            "UPDATE action_cursor SET watermark = given.until, next_occurrence_at = given.next_at"
            " FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[])"
            " AS given (uid, until, next_at) WHERE action_uid = given.uid",
            cursors,
        )

    def mark() -> None:
        cursor.execute(f"UPDATE operations SET {MARK} WHERE id = ANY(%s::uuid[])", [ids])

    return record, mark


def _column(cursor: Any, query: str) -> str:
    """Return the values of a query as the text of an array."""
    found: str = cursor.execute(f"SELECT array_agg(c)::text FROM ({query}) AS q (c)").fetchone()[0]
    return found


def _on_sqlite(raw: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return what records the operations of the tick, and what marks them."""
    rows = raw.execute(RECORDED).fetchall()
    found = raw.execute(f"{CURSORS} (SELECT action_uid FROM operations)").fetchall()
    moved = [(until, next_at, uid) for uid, until, next_at in found]
    ids = [(row[0],) for row in rows]
    raw.commit()
    marks = ", ".join("?" * len(_NAMES))

    def record() -> None:
        raw.execute("BEGIN IMMEDIATE")
        raw.executemany(f"INSERT INTO operations ({FIELDS}) VALUES ({marks}, ?)", rows)
        raw.executemany(
            "UPDATE action_cursor SET watermark = ?, next_occurrence_at = ? WHERE action_uid = ?",
            moved,
        )

    def mark() -> None:
        raw.execute("BEGIN IMMEDIATE")
        raw.executemany(f"UPDATE operations SET {MARK} WHERE id = ?", ids)

    return record, mark


if __name__ == "__main__":
    main(measure)
