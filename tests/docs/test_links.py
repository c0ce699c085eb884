"""Every relative link leads somewhere, and the words of pages are ours."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from models.operation import OperationState
from tests.docs.pages import tracked

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
)
# A decision is never edited, and a dictionary is read by its words.
PROSE = [
    page
    for page in PAGES
    if page.is_relative_to(ROOT / "docs") and page.parent.name != "adr" and page.stem != "glossary"
]
MOST_WORDS = 1500
# A page as error texts, comments and settings name it, from the root of the repository.
NAMED = re.compile(r"(?<![\w./-])(docs/[\w./-]+\.md)(?:#([\w-]+))?")
LINK = re.compile(
    r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$|<[^>]* src(?:set)?=\"([^\"]+)", re.M
)


def prose_of(page: Path) -> str:
    """Return a page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)


@cache
def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in plain}


def _leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    wanted = (page.parent / path) if path else page
    return wanted.is_file() and (not anchor or anchor in _anchors(wanted))


def test_each_relative_link_leads_somewhere() -> None:
    links = [
        (page, target)
        for page in PAGES
        for target in map("".join, LINK.findall(prose_of(page)))
        if not re.match(r"[a-z]+:", target)
    ]

    assert len(links) > 500
    assert [one for one in links if not _leads_somewhere(*one)] == []


def test_each_page_that_a_source_names_is_there() -> None:
    named = {
        found
        for suffix in ("py", "md", "yaml", "yml", "toml", "service")
        for file in ROOT.rglob(f"*.{suffix}")
        if not any(part.startswith(".") or part == "build" for part in file.relative_to(ROOT).parts)
        for found in NAMED.findall(file.read_text(encoding="utf-8"))
    }

    assert len(named) > 10
    for path, anchor in named:
        assert (ROOT / path).is_file(), path
        assert not anchor or anchor in _anchors(ROOT / path), (path, anchor)


def _words(page: Path) -> int:
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```|(?<=\])\(\S+\)", "", text, flags=re.M | re.S)
    return sum(re.search(r"\w", one) is not None for one in prose.split())


def test_a_page_is_short_enough_to_find_a_fact_in_it() -> None:
    assert {page: count for page in PROSE if (count := _words(page)) > MOST_WORDS} == {}


def test_every_page_of_the_docs_is_linked_from_an_index() -> None:
    indexes = [ROOT / "README.md", *(ROOT / "docs").rglob("README.md")]
    linked = {
        (index.parent / target.partition("#")[0]).resolve()
        for index in indexes
        for target, *_ in LINK.findall(index.read_text(encoding="utf-8"))
    }

    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert pages - linked == set()


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERMS, NAMES = GLOSSARY.split("\n## Names in Python\n")
HEADWORDS = re.findall(r"^\| (.+?) \| .+ \|$", TERMS, re.M)[1:]
# Words that the pages replaced by plainer ones; code and output may still have them.
REPLACED = re.compile(r"\b(file me|nobody|told|whoever)\b", re.I)


def test_each_state_of_an_operation_is_explained() -> None:
    assert {state.replace("_", " ") for state in OperationState} - {*HEADWORDS} == set()


def test_the_glossary_is_sorted_and_explains_each_word_once() -> None:
    keys = [word.casefold() for word in HEADWORDS]

    assert keys == sorted(set(keys))


@pytest.mark.parametrize("package", ["models", "scheduler", "tasks"])
def test_each_package_has_the_names_of_the_glossary(package: str) -> None:
    names = re.findall(r"^\| `(.+?)` \|", NAMES, re.M)
    found = import_module(package)

    assert sorted(found.__all__) == sorted(names)
    assert [getattr(found, name).__name__ for name in names] == names


def test_the_readme_is_read_in_minutes_and_its_first_run_needs_five_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```console\n(.*?)```", text, re.S)

    assert len(re.findall(r"^\$ ", shown, re.M)) == 5
    assert text.index("make test") > text.index(shown)
    assert len(text.split()) <= 800


def test_no_page_uses_a_word_that_was_replaced() -> None:
    assert {page: words for page in PAGES if (words := REPLACED.findall(prose_of(page)))} == {}


# Not as one word: this file is among those that are searched.
FORMER = "minute" + "hand"


def test_the_former_name_stands_in_no_tracked_file() -> None:
    files = {
        name: path.readlink().as_posix().encode() if path.is_symlink() else path.read_bytes()
        for name in tracked()
        if (path := ROOT / name).is_file() or path.is_symlink()
    }

    assert len(files) > 1_000
    named = {
        name
        for name, content in files.items()
        if FORMER in name.lower() or FORMER.encode() in content.lower()
    }
    assert named == set()


KERNEL = (
    *("broker", "cli", "cron", "models", "processes", "runtime", "scheduler", "services", "tasks"),
    "web",
)
FILES = [
    file
    for room in KERNEL
    for file in sorted((ROOT / room).rglob("*"))
    if file.suffix in {".py", ".html", ".toml", ".js"} and file.name != "htmx.min.js"
]
OF_DATA = re.compile(
    r"send_email|execsum|snapshots|\bdomains\b|disk_mb|new data|[`'\"](?:refresh|publish)[`'\"]",
    re.IGNORECASE,
)


def test_no_file_of_the_kernel_names_what_data_brings() -> None:
    named = {file: OF_DATA.findall(file.read_text(encoding="utf-8")) for file in FILES}

    assert {file: words for file, words in named.items() if words} == {}
