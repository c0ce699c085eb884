from collections.abc import Callable
from pathlib import Path

import pytest

from data.failures import SourceFailed, Stopped
from data.fetch.sources import source_of
from data.importing import Data, Imported, import_data
from data.limits import ImportLimits
from data.settings import FetchSettings
from tasks.bounded.limits import Watch


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "a.csv"
    made.write_text("id\n1\n")
    return made


def imported(file: Path, should_stop: Callable[[], bool]) -> Imported:
    """Import a file; `should_stop` is called meanwhile."""
    data, watch = Data(file, "csv", "a.csv"), Watch(should_stop)
    limits, target = ImportLimits.of(FetchSettings()), file.with_name("made.parquet")
    with file.open("rb") as stream:
        return import_data(limits, data, stream, target, None, watch)


@pytest.mark.parametrize("document", [{}, {"file": "a.csv", "url": "https://example.com/a.csv"}])
def test_a_source_is_one_file_or_one_url(document: dict[str, str]) -> None:
    with pytest.raises(SourceFailed, match="exactly one of"):
        source_of(document)


def test_a_file_that_changes_while_it_is_read_is_refused(file: Path) -> None:
    def write_to_it() -> bool:
        file.write_text("id\n1\n2\n")
        return False

    with pytest.raises(SourceFailed, match="changed while it was read"):
        imported(file, write_to_it)


def test_a_file_that_another_one_replaces_is_read_to_its_end(file: Path) -> None:
    def replace_it() -> bool:
        new = file.with_name("new.csv")
        new.write_text("id\n7\n8\n9\n")
        new.replace(file)
        return False

    assert imported(file, replace_it).row_count == 1


def test_a_long_reading_can_be_stopped(file: Path) -> None:
    with pytest.raises(Stopped):
        imported(file, lambda: True)
