"""Each command that an error, a remedy or a comment names is one of ours."""

import re
from collections.abc import Iterator

import pytest
from typer.main import get_command

from cli.main import cli
from tests.docs.console import ROOT

ROOMS = ("broker", "cli", "data", "interop", "models", "processes", "runtime", "scheduler")
NAMED = re.compile(r"`minutebook ([a-z][a-z -]*)")


def named() -> Iterator[str]:
    for room in (*ROOMS, "services", "tasks", "web"):
        for file in sorted((ROOT / room).rglob("*.py")):
            yield from NAMED.findall(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", sorted({one.strip() for one in named()}))
def test_each_command_that_a_text_names_is_there(text: str) -> None:
    command = get_command(cli)
    for word in text.split():
        if not hasattr(command, "get_command"):
            options = {one for param in command.params for one in param.opts}
            assert not word.startswith("--") or word in options, text
            continue
        command = command.get_command(None, word)
        assert command is not None, text
