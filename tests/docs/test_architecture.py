"""The pictures of docs/dev/architecture.md and tick.md are what the imports are."""

import re
from functools import cache
from pathlib import Path

import grimp
import pytest

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
(ROOMS_PICTURE,) = re.findall(r"```mermaid\n(.*?)```", PAGE, re.S)
(WAY_PICTURE,) = re.findall(r"```mermaid\n(.*?)```", WAY, re.S)
Edge = tuple[str, str]


def arrows(picture: str, line: str) -> list[Edge]:
    """Return the arrows of a picture that are drawn with `line`."""
    found = re.findall(rf"^ +(\S+) {re.escape(line)}(?:\|[^|]*\|)? (\S+)$", picture, re.M)
    return [(source, target) for source, target in found]


@cache
def imports() -> grimp.ImportGraph:
    """Return which module imports which, in all rooms."""
    return grimp.build_graph(*ROOMS)


def between_rooms() -> set[Edge]:
    """Return which room imports which other one."""
    graph = imports()
    edges = {
        (module.partition(".")[0], imported.partition(".")[0])
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return {edge for edge in edges - {ENTRY_POINT} if edge[0] != edge[1] and not UNDRAWN & {*edge}}


def below(room: str, drawn: list[Edge]) -> set[str]:
    """Return the rooms that the arrows from `room` lead to, directly or through others."""
    direct = {target for source, target in drawn if source == room}
    return direct.union(*(below(other, drawn) for other in direct))


def module_of(path: str) -> str:
    """Return the dotted name of a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_the_picture_of_the_rooms_shows_every_room() -> None:
    shown = {room for arrow in arrows(ROOMS_PICTURE, "-->") for room in arrow}

    assert set(ROOMS) - UNDRAWN == shown


def test_every_import_between_rooms_follows_the_arrows() -> None:
    drawn = arrows(ROOMS_PICTURE, "-->")

    against = {
        (source, target) for source, target in between_rooms() if target not in below(source, drawn)
    }
    assert against == set()


def test_every_arrow_between_rooms_is_an_import() -> None:
    assert set(arrows(ROOMS_PICTURE, "-->")) - between_rooms() == set()


@pytest.mark.parametrize("arrow", arrows(WAY_PICTURE, "-->"), ids=" to ".join)
def test_each_solid_arrow_of_the_way_is_an_import(arrow: Edge) -> None:
    importer, imported = map(module_of, arrow)

    assert imports().direct_import_exists(importer=importer, imported=imported)


def test_each_dashed_arrow_of_the_way_joins_two_files() -> None:
    dashed = arrows(WAY_PICTURE, "-.->")

    assert len(dashed) == 2
    assert all((ROOT / path).is_file() for arrow in dashed for path in arrow)


def test_each_place_that_the_pages_name_is_there() -> None:
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", PAGE + WAY)

    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_a_newcomer_reads_the_page_in_five_minutes() -> None:
    text = re.sub(r"```mermaid\n.*?```", "", PAGE, flags=re.S)

    assert len(text.split()) <= 600


def test_no_folder_has_many_more_than_twenty_files() -> None:
    folders = {file.parent for room in ROOMS for file in (ROOT / room).rglob("*.py")}
    sizes = {str(folder.relative_to(ROOT)): len([*folder.glob("*.py")]) for folder in folders}

    assert {name: size for name, size in sizes.items() if size > 23} == {}
