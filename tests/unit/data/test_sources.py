from pathlib import Path

import pytest

from data.failures import SourceFailed, Stopped
from data.fetch.freshness import is_unchanged, probe
from data.fetch.sources import source_of
from data.importing.prepare import prepare
from data.settings import Settings
from tasks.bounded.watch import Watch


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings whose data root has one file, beside one that is not in it."""
    made = Settings(home=tmp_path)
    made.effective_data_root.mkdir()
    (made.effective_data_root / "a.csv").write_text("id\n1\n")
    (tmp_path / "outside.csv").write_text("secret\n")
    return made


@pytest.mark.parametrize("document", [{}, {"file": "a.csv", "url": "https://example.com/a.csv"}])
def test_a_source_is_one_file_or_one_url(document: dict[str, str]) -> None:
    with pytest.raises(SourceFailed, match="exactly one of"):
        source_of(document)


def test_a_file_that_changes_while_it_is_read_is_refused(settings: Settings) -> None:
    file = settings.effective_data_root / "a.csv"

    def write_to_it() -> bool:
        file.write_text("id\n1\n2\n")
        return False

    with file.open("rb") as stream, pytest.raises(SourceFailed, match="changed while it was read"):
        prepare(stream, settings.home / "copy", "a.csv", settings.fetch, Watch(write_to_it))


def test_a_file_that_another_one_replaces_is_read_to_its_end(settings: Settings) -> None:
    file = settings.effective_data_root / "a.csv"

    def replace_it() -> bool:
        new = file.with_name("new.csv")
        new.write_text("id\n7\n8\n9\n")
        new.replace(file)
        return False

    with file.open("rb") as stream:
        prepare(stream, settings.home / "copy", "a.csv", settings.fetch, Watch(replace_it))

    assert (settings.home / "copy").read_text() == "id\n1\n"


def test_a_long_reading_can_be_stopped(settings: Settings) -> None:
    file = settings.effective_data_root / "a.csv"

    with file.open("rb") as stream, pytest.raises(Stopped):
        prepare(stream, settings.home / "copy", "a.csv", settings.fetch, Watch(lambda: True))


def test_a_file_is_unchanged_until_it_is_written(settings: Settings) -> None:
    source = source_of({"file": "a.csv"})
    known = probe(source, settings)
    assert known is not None

    assert is_unchanged(known, probe(source, settings))
    (settings.effective_data_root / "a.csv").write_text("id\n1\n2\n")
    assert not is_unchanged(known, probe(source, settings))


def test_a_file_that_is_gone_counts_as_changed(settings: Settings) -> None:
    assert probe(source_of({"file": "gone.csv"}), settings) is None
    assert not is_unchanged({}, None)
    assert not is_unchanged({}, {})
