from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interop.beat_file import entries_of
from interop.outcomes import Outcome, outcomes
from interop.services.imports import Import, _moved
from interop.texts import report
from models.action.document import ParseContext
from models.values import format_instant
from tasks.built_in import built_in_steps
from tests.tables import table
from tests.ticks import DAY

NOW = datetime(2026, 11, 26, 2, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None)
CRONTAB: Mapping[str, object] = {"crontab": {"minute": "0", "hour": "4"}}
FOUR = NOW + timedelta(hours=2)


def moved(schedule: Mapping[str, object], next_at: list[str] | None, **more: Any) -> Outcome:
    entry = {"name": "it", "task": "tasks.it", "schedule": schedule, **more}
    if next_at is not None:
        entry["next_at"] = next_at
    written = {
        "minutebook_beat": 1,
        "celery": "5.7.0",
        "timezone": "UTC",
        "written_at": format_instant(NOW),
        "entries": [entry],
    }
    (only,) = outcomes(entries_of(written, "beat.json", NOW), CONTEXT)
    return only


def days(first: datetime, count: int = 5) -> list[str]:
    return [format_instant(first + number * DAY) for number in range(count)]


@pytest.mark.parametrize(
    ("schedule", "next_at", "more"), table(__file__, "other_next_instants_are_a_difference")
)
def test_other_next_instants_are_a_difference(
    schedule: Mapping[str, object], next_at: list[str], more: Mapping[str, str]
) -> None:
    found = moved(schedule, next_at, **more)

    assert found.kind == "differs"
    assert found.upcoming is not None
    assert found.upcoming.differing is not None


@pytest.mark.parametrize(
    ("schedule", "next_at", "more"),
    [
        pytest.param(CRONTAB, days(FOUR), {}, id="crontab"),
        pytest.param(
            {"every_s": 86_400}, days(FOUR), {"last_run_at": format_instant(FOUR - DAY)}, id="phase"
        ),
    ],
)
def test_the_same_next_instants_are_no_difference(
    schedule: Mapping[str, object], next_at: list[str], more: Mapping[str, Any]
) -> None:
    found = moved(schedule, next_at, **more)

    assert found.kind == "same"
    assert found.upcoming is not None
    assert found.upcoming.there == found.upcoming.here


def test_an_entry_whose_next_instants_are_not_known_is_not_compared() -> None:
    found = moved(CRONTAB, None)

    assert found.kind == "same"
    assert found.upcoming is not None
    assert (found.upcoming.there, len(found.upcoming.here)) == (None, 5)


def test_the_report_shows_both_side_by_side() -> None:
    one = _moved(moved(CRONTAB, days(FOUR - timedelta(hours=1))))
    made = Import(counts={}, entries=(one,))

    head, numbers, *_, place, names, first, second, _, _, _ = report(made, is_stored=True)

    assert head == "same  differs  cannot  entries"
    assert numbers == "   0        1       0        1"
    assert place == "  it (beat.json entries[0])"
    assert names == "    beat                  here"
    assert first == "    2026-11-26T03:00:00Z  2026-11-26T04:00:00Z"
    assert second == "    2026-11-27T03:00:00Z  2026-11-27T04:00:00Z"


def test_what_most_entries_share_is_said_once_and_makes_none_differ_if_it_cannot_be_known() -> None:
    entries = [_moved(moved({"every_s": 86_400 + n}, None, name=f"it {n}")) for n in range(60)]
    lines = list(report(Import(counts={}, entries=tuple(entries)), is_stored=True))

    assert lines[1] == "  60        0       0       60"
    assert lines[3].startswith("all 60 entries: its last run is unknown")
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) < 20
