"""Texts of SCHED_COMMANDS: a program, with the variables that it may get in brackets."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

# Stands for any line of shell.
SHELL = "shell"
# A program, or a pattern of programs, and the names of variables between brackets.
_WITH_VARIABLES = re.compile(r"(?P<program>.+)\((?P<names>[A-Za-z0-9_ ]*)\)", re.DOTALL)


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
        return "has unreadable variables; write their whole names apart by spaces: x(DAY STAGE)"
    return None


def not_among(text: str, allowed: Iterable[str]) -> tuple[str, ...] | None:
    """Return the variables of a program that are not allowed; None if the program is not.

    An installation that allows any line of shell allows any variable.
    """
    program, names = program_and_variables(text)
    known = [program_and_variables(one) for one in allowed]
    its_own = [variables for pattern, variables in known if fnmatchcase(program, pattern)]
    if not its_own:
        return None
    if any(fnmatchcase(SHELL, pattern) for pattern, _ in known):
        return ()
    named = {one for variables in its_own for one in variables}
    return tuple(name for name in names if name not in named)


def is_command_among(text: str, allowed: Iterable[str]) -> bool:
    """Return whether a program is among the allowed ones, with all of its variables."""
    return not_among(text, allowed) == ()
