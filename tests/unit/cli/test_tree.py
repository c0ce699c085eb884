"""The command line loads what a call names, and shows the same as if it had loaded all."""

import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from cli.main import tree_of, whole_tree
from cli.tree import COMMANDS, GROUPS, command_named, hoisted

HEAVY = ("alembic", "celery", "duckdb", "matplotlib", "redis", "sqlalchemy")


def test_help_shows_of_each_command_what_the_command_says_of_itself() -> None:
    whole, named = get_command(whole_tree()), get_command(tree_of([]))

    assert named.get_help(named.make_context("minutehand", [], resilient_parsing=True)) == (
        whole.get_help(whole.make_context("minutehand", [], resilient_parsing=True))
    )


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        pytest.param(["--json", "status"], ["status"], id="after_a_flag"),
        pytest.param(["action", "list", "--app", "a"], ["action"], id="before_an_option"),
        pytest.param(["--home", "up", "doctor"], ["doctor"], id="after_a_value_like_a_command"),
        pytest.param(["--home=x", "up"], ["up"], id="after_a_value_with_its_option"),
        pytest.param(["--help"], [], id="none"),
    ],
)
def test_the_command_of_a_call_is_known_without_loading_any(
    arguments: list[str], name: list[str]
) -> None:
    assert command_named(hoisted(arguments)) == name


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS])
def test_each_command_is_found_by_its_name(name: str) -> None:
    root: Any = get_command(tree_of([name]))

    found = root.commands[name]
    assert found.callback is not None or found.commands
    assert "nothing" not in getattr(found, "commands", {})


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from cli.main import run; run(['--help']);"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stderr == "[]\n"
