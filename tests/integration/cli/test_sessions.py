"""Sessions of commands, each of which shows a fact: `sessions/*.yaml`.

A session has the files that it needs, variables, and its calls in order: a command, its exit code
unless that is 0, and parts of what it prints; or files that are removed.
"""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write

FACTS = {
    fact: session
    for file in sorted(Path(__file__).parent.glob("sessions/*.yaml"))
    for fact, session in yaml.safe_load(file.read_text(encoding="utf-8")).items()
}


def whole(document: Any) -> Any:
    """Return a document; one that begins with `action` is a valid action of that name."""
    if isinstance(document, list):
        return [whole(one) for one in document]
    if not isinstance(document, dict) or "action" not in document:
        return document
    return make_document(name=document["action"], **{
        key: value for key, value in document.items() if key != "action"
    })  # fmt: skip


@pytest.mark.parametrize("fact", FACTS)
def test_commands_answer_as_the_session_says(
    fact: str, call: Call, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = FACTS[fact]
    monkeypatch.chdir(home.parent)
    for name, value in session.get("env", {}).items():
        monkeypatch.setenv(name, value)
    for name, document in session.get("files", {}).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        write(whole(document), name)

    for one in session["calls"]:
        if isinstance(one, dict):
            for name in map(Path, one["removed"]):
                name.rmdir() if name.is_dir() else name.unlink()
            continue
        command, *said = one
        done = call(*shlex.split(command))
        code, *texts = said if said and isinstance(said[0], int) else (0, *said)
        assert done.code == code, (command, done)
        for text in texts:
            assert text in done.out + done.err, command
