"""`minutebook` called as a user calls it: its exit code, and what it printed."""

import json
import logging
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from cli.main import run
from runtime.config import load_settings
from runtime.database import make_engine


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Result]
Write = Callable[..., str]


@pytest.fixture(autouse=True)
def _same_logs_after() -> Iterator[None]:
    """A daemon in this process logs to the stderr of its test; no later one writes there."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_template: Path) -> Path:
    """A home folder with an empty database, which every command takes."""
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copy(sqlite_template, folder / "minutebook.db")
    monkeypatch.setenv("SCHED_HOME", str(folder))
    return folder


@pytest.fixture
def stored(home: Path) -> sa.Engine:
    """The database of the home folder."""
    return make_engine(load_settings(home, {}))


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Call:
    """Call `minutebook` on what its environment names."""

    def call(*arguments: str) -> Result:
        code = run(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def call(home: Path, ask: Call) -> Call:
    """Call `minutebook` on the home folder."""
    return ask


@pytest.fixture
def on_terminal(home: Path) -> Call:
    """Call `minutebook` on the home folder as a process with a terminal, and type an answer."""

    def call(answer: str, *arguments: str) -> Result:
        program = Path(sys.executable).with_name("minutebook")
        master, terminal = pty.openpty()
        command = [str(program), "--home", str(home), *arguments]
        with subprocess.Popen(
            command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as asked:
            os.write(master, f"{answer}\n".encode())
            out, err = asked.communicate(timeout=60)
        os.close(master)
        os.close(terminal)
        return Result(asked.returncode, out, err)

    return call


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(document: object, name: str = "action.json") -> str:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    return write
