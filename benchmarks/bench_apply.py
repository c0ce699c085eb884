"""Measure `minutebook action apply` of a JSON Lines file."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.filling import EVERY_MINUTE, document, rules_beside, whens
from benchmarks.harness import ROOT, Database, Figure, Sizes, Stack, Stopwatch, main


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the seconds to apply new actions, the same again, and one changed of each hundred."""
    database = stack.empty()
    file = database.settings.home / "actions.jsonl"
    _write(file, sizes.applied, database.now.minute)
    created = _apply(database, file)
    again = _apply(database, file)
    own = "SELECT count(*) FROM actions WHERE name <> 'maintenance'"
    assert database.count(own) == sizes.applied
    none = "SELECT count(*) FROM action_cursor WHERE next_occurrence_at IS NULL"
    assert database.count(none) == 0
    _write(file, sizes.applied, database.now.minute, changed=max(1, sizes.applied // 100))
    edited = _apply(database, file)
    stack.drop(database)
    as_text = _created_as_text(stack, sizes)
    what = f"`action apply`, {sizes.applied:,} actions"
    return [
        Figure(f"{what}: created", round(created.wall_s, 3), "s", "8"),
        Figure(f"{what}: created, CPU", round(created.cpu_s, 3), "s"),
        Figure(
            f"{what}: created, text over JSON",
            round(as_text.wall_s / created.wall_s, 2),
            "x",
            "1.2",
        ),
        Figure(f"{what}: again, unchanged", round(again.wall_s, 3), "s", "4"),
        Figure(f"{what}: again, unchanged, CPU", round(again.cpu_s, 3), "s"),
        Figure(f"{what}: 1 % changed", round(edited.wall_s, 3), "s", "15"),
        Figure(f"{what}: 1 % changed, CPU", round(edited.cpu_s, 3), "s"),
    ]


def _write(file: Path, number: int, minute: int, changed: int = 0) -> None:
    """Write the documents; the first `changed` have another description."""
    rules = whens(rules_beside(minute)) + whens(EVERY_MINUTE[:1])[:1]
    with file.open("w") as lines:
        for n in range(number):
            more = {"description": "changed"} if n < changed else {}
            one = document(f"action {n}", rules[n % len(rules)]) | more
            lines.write(json.dumps(one) + "\n")


def _created_as_text(stack: Stack, sizes: Sizes) -> Stopwatch:
    database = stack.empty()
    file = database.settings.home / "actions.jsonl"
    _write(file, sizes.applied, database.now.minute)
    took = _apply(database, file, as_json=False)
    stack.drop(database)
    return took


def _apply(database: Database, file: Path, *, as_json: bool = True) -> Stopwatch:
    """Return the time of the command: of the clock, and of its own processor time."""
    format = ["--json"] if as_json else []
    command = [sys.executable, "-m", "minutebook", *format, "action", "apply", str(file)]
    before, started = _children_cpu_s(), perf_counter()
    environment = database.environment()
    done = subprocess.run(command, env=environment, cwd=ROOT, check=False, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    return Stopwatch(perf_counter() - started, _children_cpu_s() - before)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(measure)
