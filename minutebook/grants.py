"""What the installation lets one small app (a tenant) reach."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal[
    "files", "connections", "readers", "env", "mail", "tasks", "queues", "exchanges", "steps",
    "commands",
]  # fmt: skip
ALL = "*"


@dataclass(frozen=True)
class Grants:
    """What a small app may reach, of what the settings allow; nothing by default.

    Each list holds names or patterns (`shop.*`): folders beneath the data root, connections,
    readers, variables and files of secrets, addresses of hooks, tasks of the Celery application,
    queues beside `quick`, `heavy` and `default`, exchanges of the Celery application's broker
    (each may lead to any queue), steps that are not built in, and programs of the step `command`
    (`shell` is any line of shell).
    """

    files: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    mail: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def allows(self, kind: Kind, name: str) -> bool:
        """Return whether the app may reach `name`."""
        if kind == "files":
            return self.folder_of(name) is not None
        patterns: tuple[str, ...] = getattr(self, kind)
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
