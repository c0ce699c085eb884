"""Measure the daemon's start, from exec to the end of its first tick, and its memory."""

from time import perf_counter

from benchmarks.harness import Database, Figure, Sizes, Stack, main, middle, process, rss_mb, until


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the seconds until the end of the first tick, and the resident memory then."""
    database = stack.filled(sizes.actions, sizes.many_due)
    found = [_start(database) for _ in range(sizes.repeats)]
    what = f"start of the daemon, {sizes.actions:,} actions"
    return [
        Figure(f"{what}: until its first tick ends", middle([s for s, _ in found]), "s", "1"),
        Figure(f"{what}: memory", middle([mb for _, mb in found]), "MB", "80"),
    ]


def _start(database: Database) -> tuple[float, float]:
    log = database.settings.home / "daemon.log"
    started = perf_counter()
    with process(["scheduler_server.py"], database.environment(), log) as daemon:
        while b": tick " not in log.read_bytes() and b" tick 2" not in log.read_bytes():
            if daemon.poll() is not None:
                raise RuntimeError(log.read_text())
        took = perf_counter() - started
        until(lambda: daemon.poll() is None, "the daemon to run on", log)
        return took, rss_mb(daemon.pid)


if __name__ == "__main__":
    main(measure)
