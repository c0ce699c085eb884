"""The product has one name: the one that belonged to somebody else stands nowhere."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Not as one word: this file is among those that are searched.
FORMER = "minute" + "hand"


def tracked() -> list[str]:
    """Return the names of all files and links that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    return listed.stdout.decode().rstrip("\0").split("\0")


def naming(files: dict[str, bytes]) -> Iterator[str]:
    """Yield the files whose name or content has the former name, in any case."""
    for name, content in files.items():
        if FORMER in name.lower() or FORMER.encode() in content.lower():
            yield name


def test_the_former_name_stands_in_no_tracked_file() -> None:
    files = {
        name: path.readlink().as_posix().encode() if path.is_symlink() else path.read_bytes()
        for name in tracked()
        if (path := ROOT / name).is_file() or path.is_symlink()
    }

    assert len(files) > 1_000
    assert list(naming(files)) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (f"{FORMER}/agent.py", b""),
        ("README.md", f"# {FORMER.title()}".encode()),
        ("deploy/env", f"{FORMER.upper()}_URL=x".encode()),
        ("docs/img/a.png", b"\x89PNG\xff" + FORMER.encode()),
    ],
)
def test_it_is_found_in_names_and_contents_of_any_case(name: str, content: bytes) -> None:
    assert list(naming({name: content, "other": b"minutebook"})) == [name]
