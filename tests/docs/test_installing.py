"""Nothing tells anybody to install our packages by a name that an index does not serve."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from runtime.extras import extras

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "install.md"
KINDS = ("*.md", "*.py", "*.html", "*.toml", "*.yaml", "*.yml", "Dockerfile", "Makefile")
# A literal of Python may go on in the next line.
GOES_ON = re.compile(r"""["']\n\s*f?["']""")
# Up to what ends a command in prose, code or a shell.
INSTALLS = re.compile(r"\binstall\b([^\n`;&|#]*)")
OURS = re.compile(r"""["'(]*minutebook(-client)?(\[[^\]]*\])?([=<>~!]=?[\w.*]+)?["'),.:]*""")
# In these a name follows `@`, or belongs to `install -o` of the shell.
OTHERWISE = re.compile(r"minutebook(?:-client)?(?:\[[^\]]*\])? @ \S+|-[og] minutebook\b")


def from_an_index(text: str) -> Iterator[str]:
    """Yield each command to install one of our packages by its name alone."""
    for found in INSTALLS.finditer(GOES_ON.sub("", text)):
        words = OTHERWISE.sub("", found[1]).split()
        if any(OURS.fullmatch(word) for word in words):
            yield found[0]


def test_nothing_is_installed_from_an_index_that_lacks_it() -> None:
    listed = subprocess.run(
        ["git", "ls-files", *KINDS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    files = [ROOT / name for name in listed.stdout.splitlines()]
    read = [one for one in files if one.is_file() and one != Path(__file__)]

    found = {
        str(one.relative_to(ROOT)): wrong
        for one in read
        if (wrong := list(from_an_index(one.read_text(encoding="utf-8"))))
    }
    assert found == {}


def test_no_package_of_ours_is_a_dependency_that_an_index_would_serve() -> None:
    for file in (ROOT / "examples").rglob("pyproject.toml"):
        named = tomllib.loads(file.read_text(encoding="utf-8"))["project"].get("dependencies", [])

        assert [one for one in named if OURS.fullmatch(one)] == [], file


def test_the_page_has_each_extra_that_a_step_needs() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.M)

    assert set(extras()) <= set(listed)
