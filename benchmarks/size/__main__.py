"""Print how large the house is: `make size`."""

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.size.counting import files, importers, is_of, is_product, lines, lines_of_code
from benchmarks.size.ways import WAYS


def main() -> None:
    """Print each measure on a line of its own."""
    for what, value in measures():
        print(f"{what:<58}{value}")


def measures() -> Iterator[tuple[str, str]]:
    """Yield the measures by their names; each way is run in a process of its own."""
    every = files()
    product = [file for file in every if is_product(file)]
    yield (
        "lines of code, without tests, benchmarks, examples",
        shown(sum(map(lines_of_code, product))),
    )
    yield "files", shown(len(product))
    by = importers(product)
    yield "files with one importer", shown(sum(len(found) == 1 for found in by.values()))
    yield "lines of tests", shown(sum(lines(file) for file in every if is_of(file, "tests")))
    for name in WAYS:
        in_files, functions = entered(name)
        yield f"files entered: {name}", f"{in_files:,} ({functions:,} functions)"


def entered(way: str) -> tuple[int, int]:
    """Return how many files and functions a way enters."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.size.ways", way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{way}: {done.stderr}")
    in_files, functions = json.loads(done.stdout.splitlines()[-1])
    return in_files, functions


def shown(number: int) -> str:
    """Return a number as people read it."""
    return f"{number:,}"


if __name__ == "__main__":
    main()
