"""`make soak`: simulated days, then minutes of real load; exit 1 if anything grows or is late."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence

from benchmarks.harness import machine, stack
from benchmarks.soak.findings import Finding
from benchmarks.soak.real_load import Load, carry
from benchmarks.soak.simulated import simulate


def main() -> int:
    """Run both soaks on a PostgreSQL and a Redis of their own; print what was found."""
    given = _arguments()
    print(json.dumps(machine()), flush=True)
    # Ticks that are far apart look like a downtime each.
    logging.disable(logging.WARNING)
    with stack("postgresql") as servers:
        if servers.server is not None:
            # Time passes faster than in production, and so does what vacuum has to keep up with.
            servers.server.execute("ALTER SYSTEM SET autovacuum_naptime = '5s'")
            servers.server.execute("SELECT pg_reload_conf()")
        print(f"{given.days} simulated days", flush=True)
        holds = _shown(simulate(servers, given.days, given.tick_minutes))
        print(f"{given.minutes:g} minutes of load", flush=True)
        load = Load(given.minutes, given.actions, given.history)
        holds = _shown(carry(servers, load)) and holds
    return 0 if holds else 1


def _shown(findings: Sequence[Finding]) -> bool:
    """Print findings; return whether all hold."""
    for one in findings:
        print(one, flush=True)
    return all(one.holds for one in findings)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="of real load")
    parser.add_argument("--days", type=int, default=30, help="to simulate")
    parser.add_argument("--tick-minutes", type=int, default=1, help="between simulated ticks")
    parser.add_argument("--actions", type=int, default=100, help="due every five seconds")
    parser.add_argument("--history", type=int, default=100_000, help="old operations to prune")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
