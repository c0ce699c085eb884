"""Folders that only this account may enter."""

import os
import stat
from pathlib import Path

# What this process makes is for its account alone: documents, data and mail are in it.
PRIVATE_UMASK = 0o077
PRIVATE = 0o700


def make_private(folder: Path) -> None:
    """Make `folder`, for this account alone; one that is there stays as it is."""
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)


def fault_of(folder: Path) -> str | None:
    """Return why `folder` is not this account's alone; None when it is, or when it is absent."""
    try:
        state = folder.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(state.st_mode):
        return "is not a folder"
    if state.st_uid != os.getuid():
        return f"belongs to the account {state.st_uid}, not to {os.getuid()}"
    if state.st_mode & 0o077:
        return f"is open to other accounts ({stat.S_IMODE(state.st_mode):04o}, not 0700)"
    return None
