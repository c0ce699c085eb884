"""The tz release and the kernel's version that stored next occurrences were computed with."""

import logging
from uuid import UUID

import sqlalchemy as sa

from cron import KERNEL_VERSION, tz_release
from models.errors import SchedulerError
from models.store import ticks
from models.store.actions import cursors

logger = logging.getLogger("minutehand.release")

KERNEL = "kernel_version"
TZ_RELEASE = "tz_release"
BATCH = 10_000


class OlderRelease(SchedulerError):
    """Another daemon of this database has a newer kernel or tz release than this one."""


def adopt_release(engine: sa.Engine) -> bool:
    """File every action anew if this daemon's release is newer than the stored one.

    Returns whether it did. Raises OlderRelease when it is older: its answers would be wrong.
    """
    mine = (KERNEL_VERSION, tz_release())
    with engine.begin() as connection:
        kernel, tz = ticks.fact(connection, KERNEL), ticks.fact(connection, TZ_RELEASE)
        stored = None if kernel is None or tz is None else (int(kernel), tz)
    if stored == mine:
        return False
    if stored is not None and (stored[0] > mine[0] or stored[1] > mine[1]):
        raise OlderRelease(
            f"this database was used with kernel {stored[0]}, tz {stored[1]}; this daemon has "
            f"kernel {mine[0]}, tz {mine[1]}: upgrade it (the tzdata package) and start again"
        )
    if stored is not None:
        _refile_all(engine)
    with engine.begin() as connection:
        ticks.set_fact(connection, KERNEL, str(mine[0]))
        ticks.set_fact(connection, TZ_RELEASE, mine[1])
    return stored is not None


def _refile_all(engine: sa.Engine) -> None:
    logger.warning("new tz release or kernel: all actions are filed anew")
    last: UUID | None = None
    while True:
        with engine.begin() as connection:
            last = cursors.refile(connection, BATCH, last)
        if last is None:
            return
