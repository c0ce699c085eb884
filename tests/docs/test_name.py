"""The product has one name: the one that belonged to somebody else stands nowhere."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Not as one word: this file is among those that are searched.
FORMER = "minute" + "hand"


def test_the_former_name_stands_in_no_tracked_file() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    files = {
        name: path.readlink().as_posix().encode() if path.is_symlink() else path.read_bytes()
        for name in listed.stdout.decode().rstrip("\0").split("\0")
        if (path := ROOT / name).is_file() or path.is_symlink()
    }

    assert len(files) > 1_000
    named = {
        name
        for name, content in files.items()
        if FORMER in name.lower() or FORMER.encode() in content.lower()
    }
    assert named == set()
