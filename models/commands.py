"""Programs that actions may run on the machines of workers."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

SETTING = "SCHED_COMMANDS"
# Stands for any line of shell in the setting and in grants.
SHELL = "shell"


def why_not_allowed(program: str, allowed: Sequence[str]) -> str | None:
    """Return why the setting does not allow a program, and what to change; None if it does."""
    if any(fnmatchcase(program, pattern) for pattern in allowed):
        return None
    what = f"allows {', '.join(allowed)} only" if allowed else "allows no program"
    add = "the word shell, for any command" if program == SHELL else f"{program!r}, or a pattern"
    return f"{SETTING} {what}; add {add}, to that setting"
