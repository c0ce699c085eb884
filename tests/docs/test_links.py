"""Every relative link of every page leads to a file, and to a heading that is there."""

import re
from functools import cache
from pathlib import Path

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


def _without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)


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
        for target in map("".join, LINK.findall(_without_code(page.read_text(encoding="utf-8"))))
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
