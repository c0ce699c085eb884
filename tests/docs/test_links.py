"""Every relative link leads somewhere, questions are answered near README, and words are ours."""

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


README = ROOT / "README.md"
QUESTIONS = [
    # A beat user.
    ("How do I move my beat_schedule?", "how-to/move-from-celery-beat/README", "beat_schedule"),
    ("What is crontab() here?", "how-to/move-from-celery-beat/cheat-sheet", "crontab("),
    ("What does one line in my app change?", "how-to/move-from-celery-beat/follow", "follows"),
    ("How do I create schedules in Django code?", "how-to/move-from-celery-beat/django", "owns_"),
    ("Where is the task's return value?", "how-to/read-the-result-of-a-task", "AsyncResult"),
    ("How do I run every ten seconds?", "reference/action/intervals", "PT10S"),
    ("Every second Monday?", "reference/action/intervals", "every second Monday"),
    ("What happens when the clocks change?", "explanation/time", "Clock changes"),
    ("How do I go back to beat?", "how-to/move-back", "celerybeat-schedule"),
    ("Is it faster than RedBeat?", "reference/side-by-side", "10,000 due at once"),
    # An admin.
    ("How do I invite a colleague?", "how-to/invite-colleagues", "Invite"),
    ("How do I rotate a token?", "how-to/rotate-a-token", "--grace"),
    ("What are the time limits?", "reference/time-limits", "policy.time_limit"),
    ("Who may do what?", "reference/roles", "operator"),
    ("How do I deploy on Kubernetes?", "how-to/deploy/kubernetes", "kubectl apply"),
    ("How many workers do I need?", "how-to/operate/sizing", "processes ="),
    ("How do I back it up?", "how-to/operate/backup-and-restore", "pg_dump"),
    ("How do I upgrade?", "how-to/operate/upgrade-and-roll-back", "minutebook migrate"),
    ("How do I change the database's password?", "how-to/operate/secrets-and-tls", "NOLOGIN"),
    ("How do alerts reach Slack?", "how-to/hooks-and-alerts/README", "SCHED_NOTIFY_OPS"),
    ("How is a webhook verified?", "how-to/hooks-and-alerts/webhooks", "Minutebook-Signature"),
    ("How do I leave out holidays?", "how-to/leave-out-holidays", "except"),
    # Somebody on call.
    ("What do I do now?", "how-to/at-three-in-the-morning", "minutebook status"),
    ("Why did it not run?", "how-to/when-something-failed", "action explain"),
    ("How do I run it again?", "how-to/when-something-failed", "minutebook run retry"),
    ("How do I stop everything for an hour?", "how-to/at-three-in-the-morning", "pause --all"),
    ("How do I run what was missed?", "how-to/catch-up-and-backfill", "minutebook backfill"),
    ("What if I restart the broker?", "explanation/faults", "loses its messages"),
    ("What does this reason mean?", "reference/operation", "send uncertain"),
    ("What does this log line mean?", "reference/log-events", "broker_unavailable"),
]


def clicks() -> dict[Path, int]:
    """Return how many links lead from README to each page, at least."""
    found = {README: 0}
    waiting = [README]
    for page in waiting:
        for parts in LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / "".join(parts).partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file() and target not in found:
                found[target] = found[page] + 1
                waiting.append(target)
    return found


CLICKS = clicks()


@pytest.mark.parametrize(("question", "page", "words"), QUESTIONS)
def test_each_question_is_answered_two_clicks_away(question: str, page: str, words: str) -> None:
    answer = ROOT / "docs" / f"{page}.md"

    assert CLICKS[answer] <= 2, question
    assert re.search(re.escape(words), answer.read_text(encoding="utf-8")), question


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
    text = README.read_text(encoding="utf-8")
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
