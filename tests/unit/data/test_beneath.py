"""Opening beneath a root: real links, pipes, sockets and files that are swapped in between."""

import os
import socket
import threading
from pathlib import Path

import pytest

from data.beneath import opened_beneath
from data.failures import SourceFailed
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
    ("name", "text"),
    [
        ("a.csv", "a"),
        ("./folder//b.csv", "b"),
        ("folder/../a.csv", "a"),
        ("relative.csv", "b"),
        ("absolute.csv", "b"),
        ("inside/b.csv", "b"),
        ("folder/inner/up.csv", "a"),
    ],
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
        try:
            read(root, name)
        except SourceFailed:
            continue

    assert len(os.listdir("/dev/fd")) == before
