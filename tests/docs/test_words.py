"""Words: the glossary has each of ours, README is short, and some stand nowhere."""

import re
import subprocess
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


def test_the_readme_is_read_in_minutes_and_its_first_run_needs_five_commands() -> None:
    (shown,) = re.findall(r"```console\n(.*?)```", README, re.S)

    assert len(re.findall(r"^\$ ", shown, re.M)) == 5
    assert README.index("make test") > README.index(shown)
    assert len(README.split()) <= 800


def _prose(page: Path) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)


def test_no_page_uses_a_word_that_was_replaced() -> None:
    assert {page: words for page in PAGES if (words := REPLACED.findall(_prose(page)))} == {}


# Not as one word: this file is among those that are searched.
FORMER = "minute" + "hand"


def test_the_former_name_stands_in_no_tracked_file() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    files = {
        name: path.readlink().as_posix().encode() if path.is_symlink() else path.read_bytes()
        for name in listed.stdout.decode().rstrip("\0").split("\0")
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
