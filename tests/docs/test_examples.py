"""Every command that README, tutorial, how-to and CONTRIBUTING show prints what they say."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.console import ROOT, Command, Terminal, parts_of, pattern_of
from tests.servers import temporary_folder

PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "how-to").rglob("*.md")),
    *sorted((ROOT / "docs" / "explanation").rglob("*.md")),
    *sorted((ROOT / "docs" / "dev").glob("*.md")),
]
WITH_COMMANDS = [
    pytest.param(page, id=str(page.relative_to(ROOT)))
    for page in PAGES
    if any(isinstance(part, Command) for part in parts_of(page.read_text(encoding="utf-8")))
]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal in a short folder: pages name the broker's socket in it."""
    folder = temporary_folder()
    terminal = Terminal(folder)
    yield terminal
    try:
        terminal.close()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_each_command_prints_what_the_page_shows(page: Path, terminal: Terminal) -> None:
    for part in parts_of(page.read_text(encoding="utf-8")):
        terminal.play(part)


def test_an_output_that_differs_is_noticed() -> None:
    shown = ("created x (a992c6e6-a6d1-4260-9373-d5eb6f3d9a45)", "…", "  sent: 3")

    assert pattern_of(shown).match(
        "created x (c7eb65dc-52cf-5ea3-a082-aefdb57b18dd)\nany\nlines\n  sent: 3\n"
    )
    assert not pattern_of(shown).match("created x (c7eb65dc)\n  sent: 3\n")
    assert not pattern_of(shown).match("created x (c7eb65dc-52cf-5ea3-a082-aefdb57b18dd)\n")


PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = re.split(r"^## ", PAGE.partition("## Your first change\n")[2], flags=re.M)[0]
# The terminal brings these two itself; the rest is made by tools, or is none of a change's.
LEFT_OUT = shutil.ignore_patterns(
    *("examples", "scheduler_server.py", "__pycache__", ".*", "build", "dist", "*.egg-info")
)


def test_the_test_fails_and_passes_after_the_diff(terminal: Terminal) -> None:
    shutil.copytree(ROOT, terminal.folder, symlinks=True, ignore=LEFT_OUT, dirs_exist_ok=True)
    (terminal.folder / ".venv").symlink_to(sys.prefix)
    for part in parts_of(SECTION):
        terminal.play(part)
