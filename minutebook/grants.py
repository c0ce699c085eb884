"""What the installation lets one small app (a tenant) reach."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal[
    "files", "connections", "readers", "env", "mail", "notify", "tasks", "queues", "exchanges",
    "applications", "steps", "commands",
]  # fmt: skip
ALL = "*"


@dataclass(frozen=True)
class Grants:
    """What a small app may reach, of what the settings allow; nothing by default.

    Each list holds names or patterns (`shop.*`): folders beneath the data root, connections,
    readers, variables and files of secrets, addresses of hooks, channels of hooks, tasks
    of the Celery application, queues beside `quick`, `heavy` and `default`, exchanges of the Celery
    application's broker (each may lead to any queue), Celery applications beside the default one,
    steps that are not built in, and programs of the step `command` with the variables that each may
    get: `backup.sh(DAY TARGET_*)` (`shell` is any line of shell, with any variable).
    """

    files: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    mail: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def allows(self, kind: Kind, name: str) -> bool:
        """Return whether the app may reach `name`."""
        if kind == "files":
            return self.folder_of(name) is not None
        patterns: tuple[str, ...] = getattr(self, kind)
        if kind == "commands":
            return is_command_among(name, patterns)
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    def folder_of(self, path: str) -> str | None:
        """Return the granted folder that holds `path`, both relative to the data root.

        It is `.` for all of the data root, and None if no granted folder holds the path.
        """
        parts = PurePosixPath(path)
        if ".." in parts.parts:
            return None
        folders = ("." if one == ALL else one for one in self.files)
        found = next((one for one in folders if parts.is_relative_to(one)), None)
        # A file may be granted by itself.
        return str(parts.parent) if found is not None and parts == PurePosixPath(found) else found


# Stands for any line of shell in grants and in SCHED_COMMANDS.
SHELL = "shell"
# A program, or a pattern, and names or patterns of variables between brackets.
_WITH_VARIABLES = re.compile(r"(?P<program>.+)\((?P<names>[A-Za-z0-9_*?\[\] ]*)\)", re.DOTALL)


def with_variables(program: str, names: Iterable[str]) -> str:
    """Return the text that allows a program with these variables."""
    joined = " ".join(names)
    return f"{program}({joined})" if joined else program


def program_and_variables(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the program of such a text, and the names of its variables."""
    read = _WITH_VARIABLES.fullmatch(text)
    return (text, ()) if read is None else (read["program"], tuple(read["names"].split()))


def why_no_command(text: str) -> str | None:
    """Return what is wrong with a text that allows a program, None if nothing is."""
    program, _ = program_and_variables(text)
    if not program.strip():
        return "names no program"
    is_broken = "(" in program.rpartition("/")[2] or program.endswith(")")
    if is_broken:
        return "has a bracket too many; write the names of variables apart by spaces: x(DAY STAGE)"
    return None


def is_command_among(text: str, allowed: Iterable[str]) -> bool:
    """Return whether a program is among the allowed ones, with all of its variables."""
    return not_among(text, allowed) == ()


def not_among(text: str, allowed: Iterable[str]) -> tuple[str, ...] | None:
    """Return the variables of a program that are not allowed; None if the program is not.

    Who may run any line of shell may set any variable.
    """
    program, names = program_and_variables(text)
    known = [program_and_variables(one) for one in allowed]
    its_own = [granted for pattern, granted in known if fnmatchcase(program, pattern)]
    if not its_own:
        return None
    if any(fnmatchcase(SHELL, pattern) for pattern, _ in known):
        return ()
    granted = [one for names_of_it in its_own for one in names_of_it]
    return tuple(name for name in names if not any(fnmatchcase(name, one) for one in granted))


KINDS: tuple[Kind, ...] = tuple(one.name for one in fields(Grants))  # type: ignore[misc]
EVERYTHING = Grants(*((ALL,) for _ in KINDS))


def grant_of(kind: Kind, name: str, app: str = "APP") -> str:
    """Return the command that grants `name` to a small app."""
    return f"minutebook app grant {app} --{kind} {shlex.quote(name)}"


def not_granted(kind: Kind, name: str, app: str = "APP") -> str:
    """Return the error of a small app that names something not granted to it."""
    return f"is not granted to this small app; run {grant_of(kind, name, app)}"


def grants_of_new(app: str) -> Grants:
    """Return what a new small app may reach: its own folder beneath the data root."""
    return Grants(files=(f"{app}/",))


def stored_grants(value: object) -> Grants:
    """Return the grants of a stored value: all for None, none for what cannot be read."""
    if value is None:
        return EVERYTHING
    lists = value if isinstance(value, Mapping) else {}
    known = {kind: lists.get(kind) for kind in KINDS}
    return Grants(
        **{
            kind: tuple(one for one in names if isinstance(one, str))
            for kind, names in known.items()
            if isinstance(names, (list, tuple))
        }
    )
