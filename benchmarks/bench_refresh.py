"""Measure the import of a large CSV file: rows a second, and peak memory."""

import json
import subprocess
import sys

from benchmarks.harness import ROOT, Figure, Sizes, Stack, main

# A separate process: the memory is that of the import alone.
_IMPORT = """
import json, resource, sys
from pathlib import Path
from time import perf_counter
from uuid import uuid4
from data.settings import Settings
from data import snapshots
from data.importing import Data
from data.snapshots import Place
from tasks.bounded.limits import Watch

settings, file = Settings(home=Path(sys.argv[1])), Path(sys.argv[1], "source.csv")
small = Path(sys.argv[1], "small.csv")
small.write_text("id\\n1\\n")
# A worker has loaded what it needs for the first one.
snapshots.write(settings, Place("bench", "small", uuid4()), Data(small, "csv", "source"), Watch())
started = perf_counter()
snapshots.write(settings, Place("bench", "small", uuid4()), Data(small, "csv", "source"), Watch())
small_ms = (perf_counter() - started) * 1000
started = perf_counter()
data = Data(file, "csv", "source")
written = snapshots.write(settings, Place("bench", "orders", uuid4()), data, Watch())
took = perf_counter() - started
rows = written.imported.row_count
peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(json.dumps({"rows": rows, "seconds": took, "small_ms": small_ms, "peak_mb": peak_mb}))
"""


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return rows a second, and the peak of memory, of one import of a CSV file."""
    database = stack.empty()
    file = database.settings.home / "source.csv"
    with file.open("w") as stream:
        stream.write("id,name,amount,day,paid\n")
        stream.writelines(
            f"{n},name {n % 977},{n % 1000}.{n % 100:02},2026-11-{n % 28 + 1:02},true\n"
            for n in range(sizes.imported_rows)
        )
    command = [sys.executable, "-c", _IMPORT, str(database.settings.home)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["rows"] == sizes.imported_rows
    size_mb = file.stat().st_size / 1e6
    stack.drop(database)
    what = f"import of {sizes.imported_rows:,} rows of CSV"
    details = {"file": f"{size_mb:.0f} MB", "seconds": round(found["seconds"], 2)}
    return [
        Figure(
            f"{what}: rows a second", round(found["rows"] / found["seconds"]), "rows/s", "", details
        ),
        Figure(
            f"{what}: memory at most",
            round(found["peak_mb"]),
            "MB",
        ),
        Figure("import of a CSV file of one row", round(found["small_ms"]), "ms"),
    ]


if __name__ == "__main__":
    main(measure)
