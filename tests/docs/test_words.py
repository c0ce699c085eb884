"""The glossary has every word, in order; README opens as it should; no page promises the future."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from models.operation import OperationState

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERMS, NAMES = GLOSSARY.split("\n## Names in Python\n")
HEADWORDS = re.findall(r"^\| (.+?) \| .+ \|$", TERMS, re.M)[1:]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WORDS = (
    "action", "alert", "attempt", "backfill", "catch-up", "domain", "downtime",
    "enabled", "event action", "executive summary", "failure", "lease", "look-back", "missed",
    "notice", "occurrence", "overdue", "overlap", "overtaken", "problem", "run",
    "production", "publish", "quarantined", "small app", "staging", "status", "step", "subject",
    "tick", "triggerer", "watermark", "when",
)  # fmt: skip
# Words that the pages replaced by plainer ones; code and output may still have them.
REPLACED = re.compile(r"\b(file me|nobody|told|whoever)\b", re.I)


def test_each_word_and_each_state_of_an_operation_is_explained() -> None:
    states = {state.replace("_", " ") for state in OperationState}

    assert (states | {*WORDS}) - {*HEADWORDS} == set()


def test_the_glossary_is_sorted_and_explains_each_word_once() -> None:
    keys = [word.casefold() for word in HEADWORDS]

    assert keys == sorted(set(keys))


@pytest.mark.parametrize("package", ["models", "scheduler", "tasks"])
def test_each_package_has_the_names_of_the_glossary(package: str) -> None:
    names = re.findall(r"^\| `(.+?)` \|", NAMES, re.M)
    found = import_module(package)

    assert sorted(found.__all__) == sorted(names)
    assert [getattr(found, name).__name__ for name in names] == names


def test_the_readme_opens_with_what_it_is_and_what_it_needs() -> None:
    opening = README.split("\n## ", 1)[0]

    assert opening.startswith("# Minutebook\n\nMinutebook is a cron daemon for Celery.")
    assert "`make up`" in opening
    assert all(f"- **{word}**: " in opening for word in ("Requirements", "Status", "Licence"))


def test_the_readme_is_read_in_minutes_and_its_first_run_needs_five_commands() -> None:
    (shown,) = re.findall(r"```console\n(.*?)```", README, re.S)

    assert len(re.findall(r"^\$ ", shown, re.M)) == 5
    assert README.index("make test") > README.index(shown)
    assert len(README.split()) <= 800


def _prose(page: Path) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)


def test_no_page_uses_a_word_that_was_replaced() -> None:
    assert {page: words for page in PAGES if (words := REPLACED.findall(_prose(page)))} == {}
