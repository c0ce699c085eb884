"""Where a worker's agent is: named, installed beside it, on PATH, or nowhere."""

import socket
import sys
from pathlib import Path

import pytest

from minutebook import agent_place
from minutebook.agent_place import NoAgent, Place, Program, Socket, find_agent
from tests.servers import temporary_folder

OPT = "/opt/minutebook/bin/minutebook"


@pytest.mark.parametrize(
    ("agent", "variable", "expected"),
    [
        pytest.param(OPT, None, Program((OPT,)), id="a program"),
        pytest.param(Path(OPT), None, Program((OPT,)), id="a path"),
        pytest.param(None, OPT, Program((OPT,)), id="a program in the variable"),
        pytest.param("minutebook", None, Program(("minutebook",)), id="a name on PATH"),
        pytest.param("unix:/run/m/agent", None, Socket("/run/m/agent"), id="a socket"),
        pytest.param("/run/m/agent.sock", None, Socket("/run/m/agent.sock"), id="by its suffix"),
        pytest.param(None, "unix:/run/a", Socket("/run/a"), id="a socket in the variable"),
        pytest.param("unix:/run/a", OPT, Socket("/run/a"), id="the argument goes first"),
    ],
)
def test_a_named_agent_is_used(
    agent: str | Path | None, variable: str | None, expected: Place
) -> None:
    environ = {} if variable is None else {"SCHED_AGENT": variable}

    assert find_agent(agent, environ) == expected


def test_a_socket_that_exists_is_recognised() -> None:
    path = temporary_folder() / "agent"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))

        assert find_agent(path, {}) == Socket(str(path))


def test_the_server_in_this_environment_is_used() -> None:
    expected = Program((sys.executable, "-P", "-m", "minutebook"), is_foreign=False)

    assert find_agent(None, {"PATH": "/nowhere"}) == expected


def test_an_agent_elsewhere_does_not_get_this_environment_s_modules() -> None:
    environ = {"PYTHONPATH": "/srv/shop", "PYTHONHOME": "/usr", "SCHED_HOME": "/srv/home"}

    assert Program((OPT,)).environment(environ) == {"SCHED_HOME": "/srv/home"}
    assert Program((OPT,), is_foreign=False).environment(environ) == environ


@pytest.mark.parametrize("path", ["", ".", ":/usr/bin", "bin"])
def test_no_program_of_the_working_directory_is_taken_by_chance(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(agent_place, "is_server_here", lambda: False)
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "minutebook").touch(mode=0o755)

    with pytest.raises(NoAgent):
        find_agent(None, {"PATH": path})
