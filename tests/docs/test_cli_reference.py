"""docs/reference/cli: every command and option; each command that a text names is one of ours."""

import argparse
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from cli.main import cli
from processes import daemon
from services.verdict.finding import Kind
from tests.docs.command_lines import parse_minutebook
from tests.docs.pages import DOCS, pages_of, text_of

INDEX = pages_of("reference/cli")[0].read_text(encoding="utf-8")
TEXT = text_of("reference/cli")
FOUND: list[tuple[str, str]] = re.findall(r"^#+ (.+?)\n(.*?)(?=^#+ |\Z)", TEXT, re.M | re.S)
SECTIONS = {heading.split("`")[1]: body for heading, body in FOUND if heading.startswith("`")}
# Options that several commands share stand once, in a section that is no command's.
SHARED = {heading.lower().replace(" ", "-"): body for heading, body in FOUND}
OPTION = re.compile(r"^\| `(--[a-z-]+)", re.M)


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name in children:
        yield from _commands(command.get_command(None, name), f"{path} {name}")


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
# Commands that no test runs, because they need servers, accounts or hours: `sh` blocks, and the
# handbook's sentences.
SHOWN = sorted(
    {
        line.partition("minutebook ")[2]
        for page in PAGES
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        for line in block.replace("\\\n", " ").splitlines()
        if re.match(r"([A-Z_]+=\S+ )*(\S*/)?minutebook ", line)
    }
    | {
        " ".join(command.split())
        for page in (DOCS / "how-to/operate").glob("*.md")
        for command in re.findall(r"`minutebook ([^`]+)`", page.read_text(encoding="utf-8"))
    }
)
ROOMS = ("broker", "cli", "data", "interop", "models", "processes", "runtime", "scheduler")
SOURCES = [
    file
    for room in (*ROOMS, "services", "tasks", "web")
    for file in sorted((DOCS.parent / room).rglob("*.py"))
]
# What a sentence names, without the options that may stand before a command; and what an error,
# a remedy or a comment does.
NAMED = {
    re.sub(r"--(?:app|url|token-file) \S+ |--json ", "", " ".join(command.split()))
    for page in PAGES
    for command in re.findall(r"`minutebook ([^`]+)`", page.read_text(encoding="utf-8"))
} | {
    command.strip()
    for file in SOURCES
    for command in re.findall(r"`minutebook ([a-z][a-z -]*)", file.read_text(encoding="utf-8"))
}
ROOT: Any = get_command(cli)
COMMANDS = dict(_commands(ROOT, "minutebook"))


def _options(command: Any) -> set[str]:
    return {
        flag
        for parameter in command.params
        for flag in parameter.opts
        if flag.startswith("--") and flag != "--help"
    }


def _section(path: str) -> str:
    return next(
        heading + "\n" + body
        for heading, body in SECTIONS.items()
        if re.fullmatch(rf"{path}( [A-Z[].*)?", heading)
    )


@pytest.mark.parametrize("path", COMMANDS)
def test_each_command_has_a_section_with_its_options(path: str) -> None:
    section = _section(path)
    shared = re.findall(r"^It takes \[.+?\]\(\S*?#(\S+)\)", section, re.M)
    shown = OPTION.findall("\n".join((section, *(SHARED[anchor] for anchor in shared))))

    assert _options(COMMANDS[path]) == set(shown)


@pytest.mark.parametrize("line", SHOWN)
def test_a_command_that_only_an_admin_can_run_is_understood(line: str) -> None:
    parse_minutebook(shlex.split(re.split(r" (?:[|>]|&&|2>) ?", line)[0], comments=True))


@pytest.mark.parametrize("line", sorted(line for line in NAMED if line[0].islower()))
def test_a_command_that_a_text_names_is_there(line: str) -> None:
    command, words = ROOT, line.split()
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands
        command = command.get_command(None, words.pop(0))
    # Those of the program may stand behind a command too.
    known = [*command.params, *ROOT.params]
    options = {one for param in known for one in (*param.opts, *param.secondary_opts)}
    assert {one for one in words if one.startswith("--")} <= options


def test_the_index_has_every_command_once_with_what_its_help_says() -> None:
    rows = re.findall(r"^\| \[`(.+?)`\]\(\S+\) \| (.+) \|$", INDEX, re.M)
    helps = {path: command.help.partition("\n\n")[0] for path, command in COMMANDS.items()}

    assert len(rows) == len(COMMANDS)
    assert {f"minutebook {name}": text for name, text in rows} == {
        path: " ".join(text.split()) for path, text in helps.items()
    }


def test_each_finding_of_the_verdict_is_on_a_page() -> None:
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| `(?:broken|attention|note)`", TEXT, re.M)

    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(Kind)


def test_the_global_options_are_on_the_first_page() -> None:
    assert _options(ROOT) <= {*OPTION.findall(INDEX)}


def test_the_pages_have_no_command_that_is_not_there() -> None:
    named = {
        re.split(r" [A-Z[]", heading)[0] for heading in SECTIONS if heading.startswith("minutebook")
    }
    groups = {path.rsplit(" ", 1)[0] for path in COMMANDS} - {"minutebook"}

    assert named == set(COMMANDS) | groups


def test_the_options_of_the_daemon_are_on_a_page() -> None:
    parser: argparse.ArgumentParser = daemon._parser()
    options = {flag for action in parser._actions for flag in action.option_strings}
    shown = set(OPTION.findall(SECTIONS["python scheduler_server.py"]))

    assert options - {"-h", "--help"} == shown
