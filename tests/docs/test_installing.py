"""What is installed: names that an index serves, one version, and lock files to the last."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runtime.extras import extras
from tests.docs.pages import tracked

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
    files = [ROOT / name for name in tracked(*KINDS)]
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


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# They are installed from the checkout itself.
OWN = {"minutebook-client"}


def needed(lines: list[str], seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the name of each package that these requirements need, with their extras."""
    for one in map(Requirement, lines):
        for extra in ("", *one.extras):
            if (key := (canonicalize_name(one.name), extra)) in seen:
                continue
            seen.add(key)
            yield key[0]
            its = map(Requirement, requires(one.name) or ())
            given: Mapping[str, str] = {**default_environment(), "extra": extra}  # type: ignore[dict-item]
            asked = [str(it) for it in its if it.marker is None or it.marker.evaluate(given)]
            yield from needed(asked, seen)


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("base", ("web",)), ("server", ("data", "notify", "web", "checkout")), ("dev", ("dev",))],
)
def test_a_lock_names_all_that_its_dependencies_need(lock: str, extras: tuple[str, ...]) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    named = {canonicalize_name(one) for one in re.findall(r"^([\w.-]+)(?:\[.*\])?==", text, re.M)}
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]

    assert set(needed(lines, set())) - OWN <= named


def test_the_newest_release_is_that_of_the_package() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.findall(r"^## (\d+\.\d+\.\d+)\b", changes, re.M)[0] == PROJECT["version"]


# An image, the tag that kustomize gives one, and a wheel that a page names.
TAGS = re.compile(
    r"\bminutebook(?:-data)?:(\d[\w.]*\w)"
    r"|name: minutebook(?:-data)?, newTag: ([\w.]+\w)"
    r"|\bminutebook(?:_client)?-(\d[\w.]*\w)-py3"
)


def test_each_image_and_wheel_that_is_named_is_of_this_version() -> None:
    places = ("docker-compose.yml", "deploy/kubernetes/*.yaml", "docs/**/*.md", "*.md")
    files = [file for each in places for file in ROOT.glob(each)]

    named = {
        "".join(found) for file in files for found in TAGS.findall(file.read_text(encoding="utf-8"))
    }
    assert named == {PROJECT["version"]}
