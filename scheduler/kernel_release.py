"""Track the tz release and kernel version behind the stored next occurrences."""

import logging
from uuid import UUID

import sqlalchemy as sa

from cron import KERNEL_VERSION, tz_release
from models.errors import SchedulerError
from models.store import ticks
from models.store.actions import cursors

logger = logging.getLogger("minutebook.release")

KERNEL = "kernel_version"
TZ_RELEASE = "tz_release"
BATCH = 10_000


class OlderRelease(SchedulerError):
    """Another daemon of this database uses a newer kernel or tz release."""


def adopt_release(engine: sa.Engine) -> bool:
    """Unschedule every action if this daemon's release is newer than the stored one.

    Returns whether it did. Raises OlderRelease if this daemon's release is older.
    """
    own = (KERNEL_VERSION, tz_release())
    with engine.begin() as connection:
        kernel, tz = ticks.fact(connection, KERNEL), ticks.fact(connection, TZ_RELEASE)
        stored = None if kernel is None or tz is None else (_number(kernel), tz)
    if stored == own:
        return False
    if stored is not None and (stored[0] > own[0] or stored[1] > own[1]):
        raise OlderRelease(
            f"this database was used with kernel {stored[0]}, tz {stored[1]}; this daemon has "
            f"kernel {own[0]}, tz {own[1]}: upgrade it (the tzdata package) and start again"
        )
    if stored is not None:
        _unschedule_all(engine)
    with engine.begin() as connection:
        ticks.set_fact(connection, KERNEL, str(own[0]))
        ticks.set_fact(connection, TZ_RELEASE, own[1])
    return stored is not None


def _number(kernel: str) -> int:
    """Return the kernel's version; an unreadable one counts as older than any."""
    return int(kernel) if kernel.isdecimal() else 0


def _unschedule_all(engine: sa.Engine) -> None:
    logger.warning("new tz release or kernel: the next tick schedules all actions again")
    last: UUID | None = None
    while True:
        with engine.begin() as connection:
            last = cursors.unschedule(connection, BATCH, last)
        if last is None:
            return
