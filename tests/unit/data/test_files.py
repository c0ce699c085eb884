"""Files of sources and of snapshots: real links, pipes, sockets, and what is swapped in between."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from data import snapshots
from data.beneath import opened_beneath
from data.failures import SourceFailed, Stopped
from data.fetch.sources import source_of
from data.importing import Data, Imported, import_data
from data.limits import ImportLimits
from data.settings import FetchSettings, Settings
from data.snapshots import Place, Written
from tasks.bounded.limits import Watch
from tests.tables import table


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.csv").write_text("secret")
    made = tmp_path / "root"
    (made / "folder/inner").mkdir(parents=True)
    (made / "a.csv").write_text("a")
    (made / "folder/b.csv").write_text("b")
    return made


def read(root: Path, name: str) -> str:
    with opened_beneath(root, name) as stream:
        return stream.read().decode()


@pytest.mark.parametrize(
    ("name", "text"), table(__file__, "files_and_links_within_the_root_are_read")
)
def test_files_and_links_within_the_root_are_read(root: Path, name: str, text: str) -> None:
    (root / "relative.csv").symlink_to("folder/b.csv")
    (root / "absolute.csv").symlink_to(root / "folder/b.csv")
    (root / "inside").symlink_to("folder")
    (root / "folder/inner/up.csv").symlink_to("../../a.csv")

    assert read(root, name) == text


def test_the_root_itself_may_be_a_link(root: Path) -> None:
    link = root.with_name("link")
    link.symlink_to(root)
    (root / "absolute.csv").symlink_to(link / "a.csv")

    assert read(link, "a.csv") == read(link, "absolute.csv") == "a"


@pytest.mark.parametrize(("name", "error"), table(__file__, "all_else_is_refused_at_once"))
def test_all_else_is_refused_at_once(
    root: Path, name: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "out.csv").symlink_to(root.parent / "secret.csv")
    (root / "up.csv").symlink_to("folder/../../secret.csv")
    (root / "away").symlink_to("..")
    (root / "zero").symlink_to("/dev/zero")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe.csv")
    os.link(root.parent / "secret.csv", root / "twin.csv")
    with socket.socket(socket.AF_UNIX) as server:
        # The path of a socket must be short.
        monkeypatch.chdir(root)
        server.bind("socket")

    with pytest.raises(SourceFailed, match=error):
        read(root, name)


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_what_is_swapped_in_meanwhile_is_never_read(root: Path, swapped: str) -> None:
    target, name = (root / "a.csv", "a.csv") if swapped == "file" else (root / "x", "x/secret.csv")
    if swapped == "folder":
        target.mkdir()
        (target / "secret.csv").write_text("a")
    good, bad, over = root / "good", root / "bad", threading.Event()
    os.rename(target, good)
    bad.symlink_to(root.parent / ("secret.csv" if swapped == "file" else ""))

    def swap() -> None:
        while not over.is_set():
            for one in (good, bad):
                os.rename(one, target)
                os.rename(target, one)

    thread = threading.Thread(target=swap)
    thread.start()
    read_texts, refused = set(), 0
    for _ in range(20_000):
        try:
            read_texts.add(read(root, name))
        except SourceFailed:
            refused += 1
    over.set()
    thread.join()

    assert read_texts <= {"a"}
    assert refused


def test_no_descriptor_is_left_open(root: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for name in ("a.csv", "folder/b.csv", "folder", "absent.csv", "../secret.csv"):
        with suppress(SourceFailed):
            read(root, name)

    assert len(os.listdir("/dev/fd")) == before


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


ID = UUID(int=7)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def files(home: Path) -> list[str]:
    return [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]


def write(settings: Settings, app: str = "demo", domain: str = "a") -> Written:
    file = settings.home.parent / "source"
    file.write_text("id\n1\n")
    return snapshots.write(settings, Place(app, domain, ID), Data(file, "csv", "source"), Watch())


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


def test_what_no_domain_needs_goes_when_it_is_old(settings: Settings) -> None:
    names = ("scratch/demo/x/spill/1.tmp", *(f"downloads/demo/{n}" for n in ("a.1.7.part", "b.1")))
    for name in (*names, "downloads/demo/a.1"):
        (settings.home / name).parent.mkdir(parents=True, exist_ok=True)
        (settings.home / name).write_text("x")
    now = datetime.fromtimestamp((settings.home / names[0]).parent.stat().st_mtime, UTC)
    late = now + 2 * snapshots.ORPHAN_AGE

    assert snapshots.remove_leftovers(settings.home, "demo", ["a"], now) == 0
    assert snapshots.remove_leftovers(settings.home, "demo", ["a"], late) == 3
    assert files(settings.home) == ["downloads/demo/a.1"]


@pytest.mark.parametrize(
    "path",
    [
        *("", "snapshots", "snapshots/demo/../..", "snapshots/demo/../../kept.parquet"),
        *("{home}/kept.parquet", "kept.parquet"),
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
