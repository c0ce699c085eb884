"""The time zone of this machine, by name."""

import os
from pathlib import Path


def local_zone() -> str:
    """Return the IANA name of the machine's zone: of TZ, else of /etc; UTC if none has one."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if "/" in named and not named.startswith("/"):
        return named
    linked = str(Path("/etc/localtime").resolve()).partition("/zoneinfo/")[2]
    try:
        return linked or Path("/etc/timezone").read_text().strip() or "UTC"
    except OSError:
        return "UTC"
