"""The glossary has every word, in order, and the names of each package."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from models.operation import OperationState

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERMS, NAMES = GLOSSARY.split("\n## Names in Python\n")
HEADWORDS = re.findall(r"^\| (.+?) \| .+ \|$", TERMS, re.M)[1:]
WORDS = (
    "action", "alert", "attempt", "backfill", "catch-up", "domain", "downtime",
    "enabled", "event action", "executive summary", "failure", "lease", "look-back", "missed",
    "notice", "occurrence", "overdue", "overlap", "overtaken", "problem", "run",
    "production", "publish", "quarantined", "small app", "staging", "status", "step", "subject",
    "tick", "triggerer", "watermark", "when",
)  # fmt: skip


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
