from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from data import snapshots
from data.failures import SourceFailed
from data.importing import Data
from data.settings import Settings
from data.snapshots import Place, Row, Written
from tasks.bounded.limits import Watch

ID = UUID(int=7)
TEXT = "id,n\n1,2.50\nx,-4\n3,\n"
ROWS: list[Row] = [{"id": "1", "n": 2.5}, {"id": "x", "n": -4}, {"id": "3", "n": None}]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an empty home folder."""
    return Settings(home=tmp_path / "home")


def files(home: Path) -> list[str]:
    """Return the files under `home`."""
    return [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]


def write(settings: Settings, text: str = TEXT, app: str = "demo", domain: str = "a") -> Written:
    """Write the rows of a CSV text as a snapshot."""
    file = settings.home.parent / "source"
    file.write_text(text)
    return snapshots.write(settings, Place(app, domain, ID), Data(file, "csv", "source"), Watch())


def test_what_is_written_is_read(settings: Settings) -> None:
    written = write(settings)

    assert list(snapshots.read(settings, written.path)) == ROWS
    assert files(settings.home) == [written.path] == [f"snapshots/demo/a/{ID}.parquet"]
    assert written.byte_count == (settings.home / written.path).stat().st_size
    assert snapshots.is_there(settings, written.path, written.byte_count)


def test_the_same_rows_have_the_same_digest(settings: Settings) -> None:
    first = write(settings)
    second = write(settings, domain="b")
    other = write(settings, "id,n\n1,2.50\n", domain="c")

    digests = [one.imported.digest for one in (first, second, other)]
    assert digests[0] == digests[1] != digests[2]


def test_rows_that_cannot_be_read_leave_nothing(settings: Settings) -> None:
    with pytest.raises(SourceFailed):
        write(settings, "id,n\n1\n")

    assert files(settings.home) == []


@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "a\\b", "../../etc", "x" * 200, "é" * 100, "\0", ".hidden"]
)
def test_no_name_leaves_its_folder(settings: Settings, name: str) -> None:
    written = write(settings, app=name, domain=name)

    folder = (settings.home / written.path).resolve().parents[2]
    assert folder == (settings.home / "snapshots").resolve()


def test_names_that_differ_have_folders_that_differ() -> None:
    names = ["a.b", "a%2Eb", "a b", "a_b", "x" * 150, "x" * 151]

    assert len({snapshots.folder_name(name) for name in names}) == len(names)


def test_a_file_cut_off_is_not_there(settings: Settings) -> None:
    written = write(settings)
    (settings.home / written.path).write_text("{")

    assert not snapshots.is_there(settings, written.path, written.byte_count)


@pytest.mark.parametrize("suffix", ["parquet", "parquet.part"])
def test_young_files_are_no_orphans(settings: Settings, suffix: str) -> None:
    path = f"snapshots/demo/a/{ID}.{suffix}"
    (settings.home / path).parent.mkdir(parents=True)
    (settings.home / path).write_text("x")
    now = datetime.fromtimestamp((settings.home / path).stat().st_mtime, UTC)

    assert list(snapshots.orphans(settings, "demo", set(), now)) == []
    late = now + 2 * snapshots.ORPHAN_AGE
    assert list(snapshots.orphans(settings, "demo", set(), late)) == [path]
    assert list(snapshots.orphans(settings, "demo", {path}, late)) == []


def test_what_no_domain_needs_goes_when_it_is_old(settings: Settings) -> None:
    left = [
        settings.home / name
        for name in (
            "scratch/demo/x/spill/1.tmp",
            "downloads/demo/a.1.7.part",
            "downloads/demo/b.1",
        )
    ]
    kept = settings.home / "downloads/demo/a.1"
    for file in (*left, kept):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    now = datetime.fromtimestamp(left[0].parent.stat().st_mtime, UTC)

    late = now + 2 * snapshots.ORPHAN_AGE

    assert snapshots.remove_leftovers(settings.home, "demo", ["a"], now) == 0
    assert snapshots.remove_leftovers(settings.home, "demo", ["a"], late) == 3
    assert files(settings.home) == ["downloads/demo/a.1"]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("", id="empty"),
        pytest.param("snapshots", id="all"),
        pytest.param("snapshots/demo/../..", id="above"),
        pytest.param("snapshots/demo/../../kept.parquet", id="beside"),
        pytest.param("{home}/kept.parquet", id="absolute"),
        pytest.param("kept.parquet", id="not_of_an_app"),
        pytest.param("snapshots/demo/" + "x" * 9_000 + ".parquet", id="too_long"),
        pytest.param("snapshots/demo/\ud800\0.parquet", id="no_text"),
    ],
)
def test_a_path_that_no_snapshot_has_removes_nothing(settings: Settings, path: str) -> None:
    """A hand or an upgrade may have written it into a row that maintenance prunes."""
    written = write(settings)
    (settings.home / "kept.parquet").touch()
    path = path.format(home=settings.home)

    assert not snapshots.is_there(settings, path, 0)
    assert snapshots.remove(settings, [path]) == 0
    assert sorted(files(settings.home)) == ["kept.parquet", written.path]
