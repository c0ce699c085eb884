"""Find the agent of a worker: a program to start beside it, or a socket that a sidecar serves."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Union

VARIABLE = "SCHED_AGENT"
# Before a command, or alone: an agent that no other worker uses.
OWN = "own"
SERVER = "minutebook"
SOCKET_PREFIX = "unix:"
# Variables that would lead another environment's Python to this one's modules.
OURS_ALONE = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "__PYVENV_LAUNCHER__")


@dataclass(frozen=True)
class Program:
    """The command that starts an agent, and whether it belongs to another environment.

    Workers of one account share it, unless it is one worker's own.
    """

    command: tuple[str, ...]
    is_foreign: bool = True
    is_own: bool = False

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of the agent's process."""
        unwanted = OURS_ALONE if self.is_foreign else ()
        return {name: value for name, value in environ.items() if name not in unwanted}


@dataclass(frozen=True)
class Socket:
    """The path at which an agent listens already."""

    path: str


class NoAgent(Exception):
    """No agent was named, and none is installed here."""


Place = Union[Program, Socket]


def find_agent(agent: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Place:
    """Return the place of the agent; raises NoAgent.

    It is the first of: `agent`, the variable SCHED_AGENT, the server in this environment, and a
    command `minutebook` on PATH. After `own:`, or for `own` alone, it is this worker's own.
    """
    named = str(agent or environ.get(VARIABLE) or "")
    if named == OWN or named.startswith(f"{OWN}:"):
        program = find_agent(named[len(OWN) + 1 :], {"PATH": environ.get("PATH", "")})
        return replace(program, is_own=True) if isinstance(program, Program) else program
    if named:
        return _named(named)
    if is_server_here():
        # -P keeps the working directory out of the agent's module path.
        return Program((sys.executable, "-P", "-m", SERVER), is_foreign=False)
    on_path = shutil.which(SERVER, path=environ.get("PATH"))
    # A relative entry of PATH, or an empty one, is the directory that the worker happens to be in.
    if on_path is not None and os.path.isabs(on_path):
        return Program((on_path,))
    raise NoAgent(
        "no agent: this environment has only minutebook-client; install the server into an "
        "environment of its own, as docs/how-to/install.md of the source shows, and set "
        f"{VARIABLE}=/path/to/its/bin/minutebook"
    )


def is_server_here() -> bool:
    """Whether this environment has the server too: its packages lie beside this one."""
    return (Path(__file__).resolve().parent.parent / "tasks" / "agent" / "__init__.py").exists()


def _named(text: str) -> Place:
    if text.startswith(SOCKET_PREFIX):
        return Socket(text[len(SOCKET_PREFIX) :])
    if text.endswith(".sock") or _is_socket(text):
        return Socket(text)
    # A path relative to the directory in which the worker was started, or a name on PATH.
    return Program((str(Path(text).absolute()) if os.sep in text else text,))


def _is_socket(text: str) -> bool:
    try:
        return stat.S_ISSOCK(Path(text).stat().st_mode)
    except OSError:
        return False
