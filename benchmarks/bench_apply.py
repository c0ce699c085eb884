"""Measure `minutehand action apply` of a JSON Lines file, and the first tick of its actions."""

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.filling import EVERY_MINUTE, document, rules_beside, whens
from benchmarks.harness import ROOT, Database, Figure, Sizes, Stack, main, timed
from scheduler.loop import Daemon
from tasks.built_in import built_in_steps


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the seconds to apply new actions, to apply them again, and to schedule them."""
    database = stack.empty()
    file = database.settings.home / "actions.jsonl"
    _write(file, sizes.applied, database.now.minute)
    created = _apply(database, file)
    daemon = Daemon(database.engine, database.settings, steps=built_in_steps())
    daemon.prepare()
    filed = timed(daemon.tick_once).wall_s
    again = _apply(database, file)
    own = "SELECT count(*) FROM actions WHERE name <> 'maintenance'"
    assert database.count(own) == sizes.applied
    assert database.count(
        "SELECT count(*) FROM action_cursor WHERE next_occurrence_at < '2000-01-01'"
    ) in {0}
    stack.drop(database)
    as_text = _created_as_text(stack, sizes)
    what = f"`action apply`, {sizes.applied:,} actions"
    return [
        Figure(f"{what}: created", round(created, 3), "s", "20"),
        Figure(f"{what}: created, text over JSON", round(as_text / created, 2), "x", "1.2"),
        Figure(f"{what}: again, unchanged", round(again, 3), "s"),
        Figure(f"filing {sizes.applied:,} actions by the tick", round(filed, 3), "s"),
    ]


def _write(file: Path, number: int, minute: int) -> None:
    rules = whens(rules_beside(minute)) + whens(EVERY_MINUTE[:1])[:1]
    with file.open("w") as lines:
        for n in range(number):
            lines.write(json.dumps(document(f"action {n}", rules[n % len(rules)])) + "\n")


def _created_as_text(stack: Stack, sizes: Sizes) -> float:
    database = stack.empty()
    file = database.settings.home / "actions.jsonl"
    _write(file, sizes.applied, database.now.minute)
    took = _apply(database, file, as_json=False)
    stack.drop(database)
    return took


def _apply(database: Database, file: Path, *, as_json: bool = True) -> float:
    format = ["--json"] if as_json else []
    command = [sys.executable, "-m", "minutehand", *format, "action", "apply", str(file)]
    started = perf_counter()
    done = subprocess.run(
        command, env=database.environment(), cwd=ROOT, check=False, capture_output=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    return perf_counter() - started


if __name__ == "__main__":
    main(measure)
