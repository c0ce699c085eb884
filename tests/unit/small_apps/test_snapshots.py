from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from small_apps import snapshots
from small_apps.formats import Row

ID = UUID(int=7)
ROWS: list[Row] = [{"id": "1", "n": "2.50"}, {"id": "x", "n": "-4"}, {"id": "3", "n": ""}]


def files(home: Path) -> list[str]:
    """Return the files under `home`."""
    return [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = snapshots.write(tmp_path, "demo", "a", ID, ROWS)

    assert list(snapshots.read(tmp_path, written.path)) == ROWS
    assert files(tmp_path) == [written.path] == [f"snapshots/demo/a/{ID}.jsonl"]
    assert written.byte_count == (tmp_path / written.path).stat().st_size
    assert snapshots.is_there(tmp_path, written.path, written.byte_count)


def test_figures_are_gathered_on_the_way(tmp_path: Path) -> None:
    written = snapshots.write(tmp_path, "demo", "a", ID, ROWS)

    assert written.row_count == 3
    assert written.figures == {
        "columns": {
            "id": {"kind": "text", "filled": 3},
            "n": {"kind": "number", "filled": 2, "min": -4, "max": 2.5, "sum": -1.5},
        }
    }


def test_the_same_rows_have_the_same_digest(tmp_path: Path) -> None:
    first = snapshots.write(tmp_path, "demo", "a", ID, ROWS)
    second = snapshots.write(tmp_path, "demo", "b", ID, iter(ROWS))
    other = snapshots.write(tmp_path, "demo", "c", ID, ROWS[:2])

    assert first.digest == second.digest != other.digest


def test_rows_that_break_off_leave_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[Row]:
        yield from ROWS
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError):
        snapshots.write(tmp_path, "demo", "a", ID, broken())

    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "a\\b", "../../etc", "x" * 200, "é" * 100, "\0", ".hidden"]
)
def test_no_name_leaves_its_folder(tmp_path: Path, name: str) -> None:
    written = snapshots.write(tmp_path, name, name, ID, ROWS)

    assert (tmp_path / written.path).resolve().parents[2] == (tmp_path / "snapshots").resolve()


def test_names_that_differ_have_folders_that_differ() -> None:
    names = ["a.b", "a%2Eb", "a b", "a_b", "x" * 150, "x" * 151]

    assert len({snapshots.folder_name(name) for name in names}) == len(names)


def test_a_file_cut_off_is_not_there(tmp_path: Path) -> None:
    written = snapshots.write(tmp_path, "demo", "a", ID, ROWS)
    (tmp_path / written.path).write_text("{")

    assert not snapshots.is_there(tmp_path, written.path, written.byte_count)


def test_young_files_are_nobodys_yet(tmp_path: Path) -> None:
    written = snapshots.write(tmp_path, "demo", "a", ID, ROWS)
    now = datetime.fromtimestamp((tmp_path / written.path).stat().st_mtime, UTC)

    assert list(snapshots.orphans(tmp_path, "demo", set(), now)) == []
    late = now + 2 * snapshots.ORPHAN_AGE
    assert list(snapshots.orphans(tmp_path, "demo", set(), late)) == [written.path]
    assert list(snapshots.orphans(tmp_path, "demo", {written.path}, late)) == []
