"""Which workers find the same agent."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from minutebook import agent_sharing
from minutebook.agent_place import NoAgent, Program
from minutebook.agent_sharing import held_folder, shared_folder, shared_name

ENVIRON = {"SCHED_HOME": "/srv/minutebook", "SCHED_DATABASE_URL": "postgresql://db/one"}
HERE = Program(("/usr/bin/python3", "-m", "minutebook"), is_foreign=False)


def name(environ: Mapping[str, str] = ENVIRON, program: Program = HERE, home: str = "") -> str:
    return shared_name(program, home or None, environ)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"HOME": "/home/ann", "LANG": "C"}, id="variables_of_no_installation"),
        pytest.param({"SCHED_AGENT": "/opt/minutebook"}, id="how_the_program_was_named"),
    ],
)
def test_workers_of_one_installation_share(more: dict[str, str]) -> None:
    assert name({**ENVIRON, **more}) == name()


def test_a_home_folder_is_the_same_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    names = {
        name({"SCHED_HOME": "home"}),
        name({"SCHED_HOME": str(tmp_path / "home")}),
        name({}, home="home"),
    }

    assert len(names) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"SCHED_HOME": "/srv/other"}, id="home"),
        pytest.param({"SCHED_DATABASE_URL": "postgresql://db/two"}, id="database"),
        pytest.param({"SCHED_CELERY_TASKS": "shop.*"}, id="setting"),
        pytest.param({"PGHOST": "elsewhere"}, id="server"),
    ],
)
def test_another_installation_has_another_agent(other: dict[str, str]) -> None:
    assert name({**ENVIRON, **other}) != name()


def test_another_program_or_release_has_another_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "minutebook"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    foreign = Program((str(program),))
    before = name(program=foreign)
    program.write_text("#!/bin/sh\n# of the next release\n")

    names = {before, name(program=foreign), name()}
    monkeypatch.setattr(agent_sharing, "PROTOCOL", ("lease.py",))
    names.add(name())

    assert len(names) == 4


def test_a_file_of_sqlite_that_is_named_relative_belongs_to_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relative = {**ENVIRON, "SCHED_DATABASE_URL": "sqlite:///minutebook.db"}
    names = set()
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        monkeypatch.chdir(folder)
        names |= {name(relative), name()}

    assert len(names) == 3


def test_the_folder_is_that_of_the_session_or_else_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (session := tmp_path / "session").mkdir(mode=0o700)
    (public := tmp_path / "public").mkdir()
    public.chmod(0o755)
    temporary = tmp_path / f"minutebook-{os.getuid()}-agents"

    assert shared_folder({"XDG_RUNTIME_DIR": str(session)}) == session / "minutebook"
    assert shared_folder({"XDG_RUNTIME_DIR": str(public)}) == temporary
    assert shared_folder({}) == temporary
    assert temporary.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_folder_that_others_may_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"minutebook-{os.getuid()}-agents"
    if kind == "open":
        folder.mkdir()
        folder.chmod(0o777)
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("")

    with pytest.raises(NoAgent, match=r"SCHED_AGENT=own|cannot be made"):
        shared_folder({})


def test_a_folder_that_is_held_is_there(tmp_path: Path) -> None:
    opened = held_folder(tmp_path / "agents")

    assert os.fstat(opened).st_ino == (tmp_path / "agents").stat().st_ino
    os.close(opened)
