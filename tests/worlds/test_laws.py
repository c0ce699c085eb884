"""Worlds find faults that are planted in the kernel; otherwise they would prove nothing."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from models.store.actions import cursors
from models.store.notices import alerting
from models.store.operations import put_back
from tests.worlds.plan import drawn
from tests.worlds.world import World

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
