"""Ids, and the state of a run by its id."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from models.fingerprint import fingerprint, instant_text, jitter_offset, operation_id, str_to_uuid
from models.job import id_of
from models.store.operations import get_operation_state
from runtime.database import default_engine

UID = UUID("6f1d0c1e-0000-4000-8000-000000000001")
MONDAY = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def test_the_documented_example_has_the_documented_id() -> None:
    text = fingerprint(UID, MONDAY)

    assert text == "6f1d0c1e-0000-4000-8000-000000000001 | 2026-11-23T06:00:00Z"
    assert str(str_to_uuid(text)) == "1dd03b83-7b34-516e-8a7c-7ff8626a8a85"
    assert operation_id(UID, MONDAY) == str_to_uuid(text)


def test_one_instant_in_two_zones_has_one_id() -> None:
    in_paris = MONDAY.astimezone(timezone(timedelta(hours=1)))

    assert operation_id(UID, in_paris) == operation_id(UID, MONDAY)


def test_an_instant_is_written_in_utc_whatever_its_zone() -> None:
    # Equal instants are written once: this one is of no other test.
    in_tokyo = datetime(2031, 3, 4, 8, tzinfo=timezone(timedelta(hours=9)))

    assert instant_text(in_tokyo) == "2031-03-03T23:00:00Z"


def test_another_occurrence_has_another_id() -> None:
    assert operation_id(UID, MONDAY) != operation_id(UID, MONDAY + timedelta(weeks=1))


def test_subject_event_and_manual_runs_have_ids_of_their_own() -> None:
    texts = [
        fingerprint(UID, MONDAY),
        fingerprint(UID, MONDAY, subject="ann"),
        fingerprint(UID, MONDAY, subject="ann", event_id="e1"),
        fingerprint(UID, MONDAY, manual="x"),
    ]

    assert texts[1:] == [f"{texts[0]} | ann", f"{texts[0]} | ann | e1", f"{texts[0]} | manual x"]
    assert len({str_to_uuid(text) for text in texts}) == len(texts)


def test_a_naive_instant_has_no_id() -> None:
    with pytest.raises(ValueError, match="naive"):
        instant_text(datetime(2026, 11, 23, 6, 0))  # noqa: DTZ001


def test_the_jitter_is_fixed_and_within_the_spread() -> None:
    spread = timedelta(minutes=10)
    offsets = {jitter_offset(UUID(int=number), spread) for number in range(200)}

    assert jitter_offset(UID, spread) == jitter_offset(UID, spread)
    assert all(timedelta(0) <= offset < spread for offset in offsets)
    assert len(offsets) > 100
    assert jitter_offset(UID, timedelta(0)) == timedelta(0)


def test_a_job_is_named_by_the_sha_1_of_its_url() -> None:
    assert id_of("https://example.com/feed") == "2455a093da54"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SCHED_HOME", str(tmp_path / "home"))
    default_engine.cache_clear()
    yield tmp_path / "home"
    default_engine.cache_clear()


def test_without_a_database_an_operation_is_unknown_and_no_file_is_made(home: Path) -> None:
    assert get_operation_state(uuid4()) == "unknown"
    assert not home.exists()


def test_an_operation_is_unknown_in_an_empty_database(home: Path) -> None:
    home.mkdir()
    (home / "minutebook.db").touch()

    assert get_operation_state(uuid4()) == "unknown"
    assert (home / "minutebook.db").stat().st_size == 0
