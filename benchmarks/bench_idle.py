"""Measure a tick without a due action, and memory over many ticks."""

import os

from benchmarks.harness import Figure, Sizes, Stack, main, middle, rss_mb, timed
from scheduler.loop import Daemon
from tasks.built_in import built_in_steps


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return CPU and wall time of an idle tick with its report, and the growth of memory."""
    database = stack.filled(sizes.actions, sizes.many_due)
    daemon = Daemon(database.engine, database.settings, steps=built_in_steps())
    daemon.prepare()
    daemon.tick_once(database.now)
    before = rss_mb(os.getpid())
    ticks = [timed(lambda: daemon.tick_once(database.now)) for _ in range(sizes.idle_ticks)]
    grown = rss_mb(os.getpid()) - before
    what = f"idle tick, {sizes.actions:,} actions"
    return [
        Figure(
            f"{what}: CPU",
            middle([one.cpu_s * 1e3 for one in ticks]),
            "ms",
            "0.6" if stack.server is None else "1",
        ),
        Figure(f"{what}: wall", middle([one.wall_s * 1e3 for one in ticks]), "ms", "3"),
        Figure(f"memory grown over {sizes.idle_ticks:,} idle ticks", round(grown, 3), "MB", "flat"),
    ]


if __name__ == "__main__":
    main(measure)
