"""Put Minutebook beside other schedulers; print a table in Markdown.

python -m benchmarks.peers [--part due,idle,faults,clocks] [--small] [--output FILE]
"""

import argparse
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.peers.clocks import measure_clocks
from benchmarks.peers.contestants import ALL, PYTHON
from benchmarks.peers.faults import measure_faults
from benchmarks.peers.speed import FULL, SMALL, Sizes, measure_due, measure_idle
from benchmarks.peers.table import table
from runtime.clock import utc_now
from tests.servers import PostgreSQL, free_port, redis_binary, temporary_folder

PARTS: dict[str, Callable[[Path, PostgreSQL, Sizes], Any]] = {
    "clocks": measure_clocks,
    "due": measure_due,
    "idle": measure_idle,
    "faults": measure_faults,
}


def versions() -> dict[str, str]:
    """Return the versions of the peers and of what they run with."""
    names = [*(one.package for one in ALL if one.package != "minutebook"), "kombu", "redis"]
    code = f"from importlib.metadata import version as v\nprint(*map(v, {names!r}))"
    done = subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True)
    server = subprocess.run(
        [redis_binary(), "--version"], check=True, capture_output=True, text=True
    )
    return {**dict(zip(names, done.stdout.split(), strict=True)), "server": server.stdout.strip()}


def measure(parts: list[str], sizes: Sizes, output: Path | None) -> dict[str, Any]:
    """Run the parts; return the results, which are written after each part."""
    found: dict[str, Any] = machine() | {"versions": versions(), "began_at": str(utc_now())}
    folder = temporary_folder()
    (folder / "server").mkdir(mode=0o755)
    server = PostgreSQL(folder / "server", free_port())
    try:
        server.create()
        server.start(("-c", "max_wal_size=4GB"))
        for part in parts:
            found[part] = PARTS[part](folder / part, server, sizes)
            print(f"{part}: {json.dumps(found[part])}", flush=True)
            if output:
                output.write_text(json.dumps(found, indent=1) + "\n")
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return found | {"ended_at": str(utc_now())}


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description="Put Minutebook beside other schedulers.")
    parser.add_argument("--part", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to check that it works")
    parser.add_argument("--output", type=Path, help="file for the results, as JSON")
    given = parser.parse_args()
    parts = given.part.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; write {', '.join(PARTS)}")
    found = measure(parts, SMALL if given.small else FULL, given.output)
    print(", ".join(f"{key} {found[key]}" for key in ("date", "cpu", "cpus", "python", "load")))
    print(found["versions"])
    print(table(found))


if __name__ == "__main__":
    main()
