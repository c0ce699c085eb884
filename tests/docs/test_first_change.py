"""CONTRIBUTING's "Your first change" can be made: its test fails, and passes after its diff."""

import re
import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.docs.console import ROOT, Terminal, parts_of
from tests.servers import temporary_folder

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = re.split(r"^## ", PAGE.partition("## Your first change\n")[2], flags=re.M)[0]
# The terminal brings these two itself; the rest is made by tools, or is none of a change's.
LEFT_OUT = shutil.ignore_patterns(
    *("examples", "scheduler_server.py", "__pycache__", ".*", "build", "dist", "*.egg-info")
)


@pytest.fixture
def checkout() -> Iterator[Terminal]:
    """A terminal in a copy of the repository."""
    folder = temporary_folder()
    shutil.copytree(ROOT, folder, symlinks=True, ignore=LEFT_OUT, dirs_exist_ok=True)
    (folder / ".venv").symlink_to(sys.prefix)
    terminal = Terminal(folder)
    yield terminal
    terminal.close()
    shutil.rmtree(folder)


def test_the_test_fails_and_passes_after_the_diff(checkout: Terminal) -> None:
    for part in parts_of(SECTION):
        checkout.play(part)
