"""The account that runs this process, and the folders that are private to it."""

import getpass
import os
import stat
from pathlib import Path

from runtime.logs.events import EventLog

logger = EventLog("minutebook.home")

# Files of this process hold documents, data and mail: other accounts must not read them.
PRIVATE_UMASK = 0o077
PRIVATE = 0o700


def account_name() -> str:
    """Return the name of this process's account; `unknown` for one without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def work_privately() -> None:
    """Let this process make files that other accounts cannot read."""
    os.umask(PRIVATE_UMASK)


def make_home(home: Path) -> None:
    """Create a home folder, and log that it is new."""
    if not home.exists():
        logger.info("home_folder_made", "made the home folder {home}; --home names another", home)
    make_private(home)


def make_private(folder: Path) -> None:
    """Create `folder` private to this account; an existing one stays unchanged."""
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)


def fault_of(folder: Path) -> str | None:
    """Return why `folder` is not private to this account; None if it is, or does not exist."""
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
