"""`minutebook` called as a user calls it: its exit code, and what it printed."""

import json
import logging
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI

from cli.main import run
from models.roles import Role
from services import tokens
from services.installation import Installation
from tests.web_server import serving
from web.app import make_app


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


@dataclass
class Elsewhere:
    """A server that serves one home folder after the other."""

    app: FastAPI
    url: str

    def options(self, home: Path) -> list[str]:
        """Serve a home folder with the present settings; return how commands name it."""
        self.close()
        opened = Installation(home)
        self.app.state.installation = opened
        return ["--url", self.url, "--token", tokens.create(opened, Role.ADMIN, None).token]

    def close(self) -> None:
        """Close the database of the home folder."""
        engine = self.app.state.installation.__dict__.pop("engine", None)
        if engine is not None:
            engine.dispose()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Elsewhere]:
    """A server for commands that are called with `--url`."""
    opened = Installation(tmp_path_factory.mktemp("served"))
    app = make_app(opened)
    with serving(app, opened.settings.web) as url:
        elsewhere = Elsewhere(app, url)
        yield elsewhere
        elsewhere.close()


@pytest.fixture
def call(home: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*arguments: str) -> Result:
        code = run(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


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
