"""The only reader of this machine's clocks.

Decisions take `now` as an argument, from the database's clock (`models.sql.read_clock`), which on
SQLite is this machine's. SQL statements compare liveness. Durations use `monotonic`.
"""

import os
import time
import zoneinfo
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["POLL_S", "machine_zone", "monotonic", "use_pinned_zones", "utc_now", "wait_for"]

POLL_S = 0.05


def utc_now() -> datetime:
    """Return this machine's wall clock as an aware UTC instant."""
    return datetime.now(UTC)


def machine_zone(environ: Mapping[str, str] = os.environ) -> str:
    """Return the IANA name of the machine's zone: of TZ, else of /etc; UTC if none has one."""
    named = environ.get("TZ", "").removeprefix(":")
    if "/" in named and not named.startswith("/"):
        return named
    linked = str(Path("/etc/localtime").resolve()).partition("/zoneinfo/")[2]
    try:
        return linked or Path("/etc/timezone").read_text().strip() or "UTC"
    except OSError:
        return "UTC"


def use_pinned_zones() -> None:
    """Let this process show local times by the tz release that decides: that of the tzdata wheel.

    `zoneinfo` prefers the system's, which may be older or newer.
    """
    # Otherwise pytz, which knows the names, opens the files of all 600 zones before it answers.
    os.environ.setdefault("PYTZ_SKIPEXISTSCHECK", "1")
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()


def monotonic() -> float:
    """Return seconds on a clock that is never set; only differences are meaningful."""
    return time.monotonic()


def wait_for(condition: Callable[[], bool], timeout_s: float, poll_s: float = POLL_S) -> bool:
    """Return True once `condition()` holds, False after `timeout_s`."""
    end = monotonic() + timeout_s
    while not condition():
        left_s = end - monotonic()
        if left_s <= 0:
            return False
        time.sleep(min(poll_s, left_s))
    return True
