"""`minutehand` called as a user calls it: its exit code, and what it printed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.main import run


class Result(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read as JSON."""
        return json.loads(self.out)


Call = Callable[..., Result]
Write = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_template: Path) -> Path:
    """A home folder with an empty database, which every command takes."""
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copy(sqlite_template, folder / "minutehand.db")
    monkeypatch.setenv("SCHED_HOME", str(folder))
    return folder


@pytest.fixture
def call(home: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call `minutehand` on the home folder."""

    def call(*arguments: str) -> Result:
        code = run(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a document to a file; return its path."""

    def write(document: object, name: str = "action.json") -> str:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    return write
