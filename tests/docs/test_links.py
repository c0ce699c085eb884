"""Every relative link of every page leads to a file, and to a heading that is there."""

import re
from pathlib import Path

import pytest

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


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_relative_link_leads_somewhere(page: Path) -> None:
    text = _without_code(page.read_text(encoding="utf-8"))
    targets = ["".join(found) for found in LINK.findall(text)]

    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        wanted = (page.parent / path) if path else page
        assert wanted.is_file(), target
        assert not anchor or anchor in _anchors(wanted), target


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


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_short_enough_to_find_a_fact_in_it(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```|(?<=\])\(\S+\)", "", page.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    words = [one for one in text.split() if re.search(r"\w", one)]

    assert len(words) <= MOST_WORDS


def test_every_page_of_the_docs_is_linked_from_an_index() -> None:
    indexes = [ROOT / "README.md", *(ROOT / "docs").rglob("README.md")]
    linked = {
        (index.parent / target.partition("#")[0]).resolve()
        for index in indexes
        for target, *_ in LINK.findall(index.read_text(encoding="utf-8"))
    }

    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert pages - linked == set()
