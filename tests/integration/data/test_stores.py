"""Stores of snapshots: the home folder, another folder, and one behind fsspec.

The last one is fsspec's own store in this process: it has no folders and no renames, as an object
store has none.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from data import snapshots
from data.failures import SourceFailed
from data.importing import Data, Rules
from data.settings import Settings
from data.snapshots import Place, Written
from data.snapshots.stores import Store, store_of
from tasks.bounded.limits import Watch


@pytest.fixture(params=["home", "folder", "object_store"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    url = {
        "home": "",
        "folder": f"file://{tmp_path}/other%20disk",
        "object_store": "memory://bucket/some/prefix",
    }[request.param]
    yield Settings.model_validate({"home": tmp_path / "home", "snapshots": {"url": url}})
    memory.store.clear()


def write(settings: Settings, text: str, last: str | None = None) -> Written:
    """Write a snapshot of a CSV text, merged into the last one by `id`."""
    file = settings.home.parent / "source.csv"
    file.write_text(text)
    data = Data(file, "csv", "source", Rules(key=("id",)))
    return snapshots.write(settings, Place("shop", "a", uuid4()), data, Watch(), last)


def test_a_snapshot_is_written_whole_and_read(settings: Settings) -> None:
    written = write(settings, "id,v\n1,a\n2,b\n")

    assert snapshots.is_there(settings, written.path, written.byte_count)
    assert not snapshots.is_there(settings, written.path, written.byte_count + 1)
    assert not snapshots.is_there(settings, "snapshots/shop/a/absent.parquet", 1)
    rows = list(snapshots.read(settings, written.path))
    assert rows == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    assert [path for path, _at in store_of(settings).files("snapshots/shop")] == [written.path]
    assert not list((settings.home / "scratch").rglob("*/*"))


def test_rows_are_merged_into_the_last_snapshot(settings: Settings) -> None:
    last = write(settings, "id,v\n1,a\n2,b\n")

    written = write(settings, "id,v\n2,z\n", last.path)

    assert list(snapshots.read(settings, written.path)) == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": "z"},
    ]
    assert list(snapshots.read(settings, last.path)) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


def test_what_fails_leaves_nothing_in_the_store(settings: Settings) -> None:
    with pytest.raises(SourceFailed):
        write(settings, "id,v\n1\n")

    assert list(store_of(settings).files("snapshots")) == []


def test_old_files_that_no_row_names_are_found(settings: Settings) -> None:
    kept, lost = write(settings, "id\n1\n"), write(settings, "id\n2\n")
    now = dict(store_of(settings).files("snapshots/shop"))[lost.path]
    assert now is not None

    late = now + 2 * snapshots.ORPHAN_AGE
    assert list(snapshots.orphans(settings, "shop", {kept.path}, now)) == []
    assert list(snapshots.orphans(settings, "shop", {kept.path}, late)) == [lost.path]


def test_a_missing_last_snapshot_is_reported(settings: Settings) -> None:
    last = write(settings, "id\n1\n")
    snapshots.remove(settings, [last.path])

    with pytest.raises(SourceFailed, match="last snapshot is missing"):
        write(settings, "id\n2\n", last.path)


def test_a_store_without_a_driver_is_named(tmp_path: Path) -> None:
    given = {"home": tmp_path, "snapshots": {"url": "s3://s3cret-bucket/x"}}

    with pytest.raises(SourceFailed, match=r"SCHED_SNAPSHOTS_URL \(s3://…\).*s3fs") as failed:
        store_of(Settings.model_validate(given))

    assert "s3cret" not in str(failed.value)


def test_an_upload_that_breaks_off_is_no_snapshot(tmp_path: Path) -> None:
    class Breaking(fsspec.filesystem("memory").__class__):  # type: ignore[misc]
        def put_file(self, _local: str, target: str, **_named: object) -> None:
            self.pipe_file(target, b"half")

    local = tmp_path / "made"
    local.write_bytes(b"whole")

    with pytest.raises(SourceFailed, match="the store kept 4 bytes"):
        Store(Breaking(skip_instance_cache=True), "/bucket").put(local, "a/b.parquet")
    assert local.exists()
