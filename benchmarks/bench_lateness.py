"""Measure the lateness of messages in Redis after the instant of their operation.

A real, waiting daemon ticks every five seconds. Other actions are due at each tick, for many
samples per minute. Redis itself (MONITOR) reports the time of each message.
"""

import re
import socket
from datetime import UTC, datetime, timedelta
from uuid import UUID

from benchmarks.filling import park, release
from benchmarks.harness import Database, Figure, Sizes, Stack, main, percentile, process, until

STEP = timedelta(seconds=5)
CAME = re.compile(rb'\+(\d+\.\d+) \[[^\]]*\] "LPUSH" "minutebook.quick" ([^\r]*)')
# Each message of a command has it once.
MESSAGE = rb"\"body\""


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the median, p99 and maximum lateness."""
    many = sizes.late_due * sizes.late_rounds
    database = stack.filled(sizes.late_actions, many, when="PT5S")
    late = [at * 1e3 for at in _lateness(stack, database, sizes)]
    what = f"lateness, {sizes.late_due:,} due among {sizes.late_actions:,}"
    return [
        Figure(f"{what}: p50", round(percentile(late, 50), 1), "ms"),
        Figure(f"{what}: p99", round(percentile(late, 99), 1), "ms", "200"),
        Figure(f"{what}: worst of {len(late):,}", round(late[-1], 1), "ms"),
    ]


def _lateness(stack: Stack, database: Database, sizes: Sizes) -> list[float]:
    log = database.settings.home / "daemon.log"
    environment = database.environment(SCHED_SCHEDULER_TICK_SECONDS="5")
    with (
        process(["scheduler_server.py"], environment, log),
        socket.create_connection(("127.0.0.1", stack.broker.port), timeout=60) as monitor,
    ):
        monitor.sendall(b"MONITOR\r\n")
        until(lambda: b" tick " in log.read_bytes(), "the first tick", log)
        first = _release_in_rounds(database, sizes)
        late = []
        for number in range(sizes.late_rounds):
            due_at = (first + number * STEP).timestamp()
            late += [at - due_at for at in _messages(monitor, sizes.late_due)]
            # Otherwise the next tick would find them due too.
            park(database.engine, _round(database, sizes, number))
    return sorted(late)


def _round(database: Database, sizes: Sizes, number: int) -> list[UUID]:
    return database.due[number * sizes.late_due :][: sizes.late_due]


def _release_in_rounds(database: Database, sizes: Sizes) -> datetime:
    """Make other actions due at each of the next ticks; return the first tick."""
    now = database.clock()
    first = datetime.fromtimestamp((now.timestamp() // 5 + 3) * 5, UTC)
    for number in range(sizes.late_rounds):
        uids = _round(database, sizes, number)
        release(database.engine, uids, first + number * STEP, behind=STEP)
    return first


def _messages(monitor: socket.socket, number: int) -> list[float]:
    """Return the time of each of `number` messages, in seconds of this machine's clock.

    Commands, each with many messages, are parsed only at the end: parsing at once would take the
    daemon's processor.
    """
    seen = bytearray()
    while seen.count(MESSAGE) < number or not seen.endswith(b"\r\n"):
        seen += monitor.recv(1 << 20)
    found = [(float(at), text.count(MESSAGE)) for at, text in CAME.findall(bytes(seen))]
    return [at for at, messages in found for _ in range(messages)]


if __name__ == "__main__":
    main(measure)
