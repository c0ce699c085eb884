"""The picture of the rooms is true, and a commit is checked by what make lint runs."""

import re
from pathlib import Path
from typing import Any

import grimp
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/dev/architecture.md").read_text(encoding="utf-8")
WAY = (ROOT / "docs/dev/tick.md").read_text(encoding="utf-8")
# Migrations stand below and above `models`: they import its column types, and it runs them.
UNDRAWN = {"migrations"}
# The command `minutebook` is installed as a module of the public face.
ENTRY_POINT = ("minutebook", "cli")
ROOMS = sorted(
    folder.name
    for folder in ROOT.iterdir()
    if (folder / "__init__.py").exists() and folder.name != "tests"
)
(PICTURE,) = re.findall(r"```mermaid\n(.*?)```", PAGE, re.S)
Edge = tuple[str, str]
ARROWS: list[Edge] = re.findall(r"^ +(\S+) -->(?:\|[^|]*\|)? (\S+)$", PICTURE, re.M)


def between_rooms() -> set[Edge]:
    graph = grimp.build_graph(*ROOMS)
    edges = {
        (module.partition(".")[0], imported.partition(".")[0])
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return {edge for edge in edges - {ENTRY_POINT} if edge[0] != edge[1] and not UNDRAWN & {*edge}}


def test_the_picture_of_the_rooms_shows_every_room() -> None:
    assert set(ROOMS) - UNDRAWN == {room for arrow in ARROWS for room in arrow}


def test_every_arrow_between_rooms_is_an_import() -> None:
    assert {*ARROWS} - between_rooms() == set()


def test_each_place_that_the_pages_name_is_there() -> None:
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", PAGE + WAY)

    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_folder_has_many_more_than_twenty_files() -> None:
    folders = {file.parent for room in ROOMS for file in (ROOT / room).rglob("*.py")}
    sizes = {str(folder.relative_to(ROOT)): len([*folder.glob("*.py")]) for folder in folders}

    assert {name: size for name, size in sizes.items() if size > 23} == {}


CONFIGURATION = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
HOOKS: list[dict[str, Any]] = [
    hook for source in CONFIGURATION["repos"] for hook in source["hooks"]
]


def test_hooks_run_what_make_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.M)

    linted = [line.strip().replace("$(BIN)", ".venv/bin") for line in lines.splitlines()]
    assert [hook["entry"] for hook in HOOKS] == linted


def test_hooks_install_nothing_and_check_the_whole_tree() -> None:
    assert [source["repo"] for source in CONFIGURATION["repos"]] == ["local"]
    assert all(hook["language"] == "system" for hook in HOOKS)
    assert not any(hook["pass_filenames"] for hook in HOOKS)
