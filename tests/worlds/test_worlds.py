"""Some worlds break no promise, and find what is planted; `make worlds` lives through more."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from models.store.actions import cursors
from models.store.notices import alerting
from models.store.operations import put_back
from tests.acceptance.processes import ROOT
from tests.worlds.plan import drawn
from tests.worlds.world import World


def lived(*arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.worlds", "--processes", "1", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_no_promise_is_broken_in_some_worlds() -> None:
    status, output = lived("--seed", "1", "--worlds", "4")

    assert status == 0, output
    assert output[-1].startswith("worlds 4, steps "), output
    assert output[-1].endswith(", violations 0")


def test_no_promise_is_broken_in_a_world_on_postgresql() -> None:
    status, output = lived("--store", "postgresql", "--worlds", "1", "--seed", "4")

    assert status == 0, output


def test_the_same_seed_is_the_same_world() -> None:
    first, second = (lived("--worlds", "1", "--seed", "3") for _ in range(2))

    assert first == second


MOST_WORLDS = 60
Plant = Callable[[pytest.MonkeyPatch], None]


def losses_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = put_back.lost

    def uncounted(*given: Any) -> Any:
        return replace(lost(*given), is_loss=False)

    monkeypatch.setattr(put_back, "lost", uncounted)


def failures_owe_no_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerting, "enqueue", lambda *_: [])


def watermarks_run_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = cursors.advance

    def ahead(connection: Any, moves: Any) -> None:
        advance(
            connection,
            [{**one, "watermark": one["watermark"] + timedelta(seconds=7)} for one in moves],
        )

    monkeypatch.setattr(cursors, "advance", ahead)


@pytest.mark.parametrize(
    ("plant", "law", "first"),
    [
        # Near seeds whose worlds lose something.
        (losses_are_not_counted, "a loss is counted", 26),
        (failures_owe_no_notice, "a_failure_has_its_notice", 1),
        (watermarks_run_ahead, "every_occurrence_has_one_outcome", 1),
    ],
)
def test_a_planted_fault_breaks_its_law(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, law: str, first: int
) -> None:
    plant(monkeypatch)

    for seed in range(first, first + MOST_WORLDS):
        if any(one.startswith(law) for one in World(drawn(seed)).run()):
            return
    pytest.fail(f"{MOST_WORLDS} worlds broke no law")
