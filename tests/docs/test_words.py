"""The glossary has every word; README opens as it should; nothing is promised that is not there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WORDS = (
    "small app", "scheduled action", "when", "occurrence", "subject", "operation", "attempt",
    "step", "tick", "look-back", "watermark", "triggerer",
)  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_explained(word: str) -> None:
    assert re.search(rf"^\| {word}( \(.+\))? \| .+ \|$", GLOSSARY, re.M)


def test_the_readme_opens_with_what_it_is_and_the_two_commands() -> None:
    opening = README.split("\n## ", 1)[0]

    assert opening.startswith("# Minutehand\n\nMinutehand is a cron daemon for Celery.")
    assert "make up " in opening
    assert "make test " in opening


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_command_that_is_not_there_yet(page: Path) -> None:
    later = r"minutehand (web|event|job|token|simulate|backfill|export|import)\b"

    assert not re.search(later, page.read_text(encoding="utf-8"))
