"""Compare this process's tz release and kernel with those that decide in the database.

Two releases must not decide side by side: each would pass over what the other one scheduled.
"""

from typing import NamedTuple

import sqlalchemy as sa

from cron import KERNEL_VERSION, tz_release
from models.errors import Refused
from models.sql import insert_ignoring
from models.store import key_values
from models.store.actions import cursors
from models.store.key_values import KERNEL, TZ_RELEASE
from models.tables import installation
from runtime.database import unhurried
from runtime.logs.events import EventLog

logger = EventLog("minutebook.release")


class Release(NamedTuple):
    """A version of the kernel, and a release of the tz database."""

    kernel: int
    tz: str

    def __str__(self) -> str:
        return f"kernel {self.kernel}, tz {self.tz}"

    def is_older_than(self, other: "Release") -> bool:
        """Return whether either part is older; the other one may be newer."""
        return self.kernel < other.kernel or self.tz < other.tz


class OtherRelease(Refused):
    """Another kernel or tz release than this process's decides in the database."""

    def __init__(self, stored: Release) -> None:
        older = "this process" if own_release().is_older_than(stored) else "the daemon"
        super().__init__(
            f"this process has {own_release()}, and the daemon of this database {stored}; upgrade "
            f"{older} (the tzdata package) and start it again first"
        )


def own_release() -> Release:
    """Return the release of this process."""
    return Release(KERNEL_VERSION, tz_release())


def release_in(kernel: str | None, tz: str | None) -> Release | None:
    """Return the stored release, None before the first daemon.

    An unreadable kernel counts as older than any.
    """
    if kernel is None or tz is None:
        return None
    return Release(int(kernel) if kernel.isdecimal() else 0, tz)


def _stored(connection: sa.Connection, *, is_held: bool = False) -> Release | None:
    known = key_values.values(connection, (KERNEL, TZ_RELEASE), is_held=is_held)
    return release_in(known.get(KERNEL), known.get(TZ_RELEASE))


def adopt_release(engine: sa.Engine) -> bool:
    """Let this process's release decide, and every action be decided anew if an older one did.

    Returns whether it did. Raises OtherRelease if this process's release is the older one. Waits
    for decisions that began before; see `hold_release`.
    """
    own = own_release()
    with unhurried(engine) as connection:
        be_first(connection)
        key_values.hold_value(connection, TZ_RELEASE)
        stored = _stored(connection)
        if stored is None or stored == own:
            return False
        if own.is_older_than(stored):
            raise OtherRelease(stored)
        key_values.set_value(connection, KERNEL, str(own.kernel))
        key_values.set_value(connection, TZ_RELEASE, own.tz)
        cursors.reschedule(connection)
    logger.warning(
        "kernel_adopted", "new tz release or kernel: the next tick schedules all actions again"
    )
    return True


def be_first(connection: sa.Connection) -> None:
    """Let our release decide if there is none yet: it computes next occurrences from now on."""
    own = own_release()
    first = [{"key": KERNEL, "value": str(own.kernel)}, {"key": TZ_RELEASE, "value": own.tz}]
    connection.execute(insert_ignoring(connection, installation), first)


def hold_release(connection: sa.Connection) -> None:
    """Raise OtherRelease unless our release decides here; call it before deciding an action.

    Until this transaction ends, no daemon adopts another release. The first to store one is ours.
    """
    stored = _stored(connection, is_held=True)
    if stored is None:
        be_first(connection)
    elif stored != own_release():
        raise OtherRelease(stored)


def why_not_decide(engine: sa.Engine, kernel: str | None, tz: str | None) -> str | None:
    """Return why a tick that found this release must not decide; adopt ours if it is the newer."""
    if release_in(kernel, tz) in {None, own_release()}:
        return None
    try:
        # A backup from before the upgrade was restored.
        adopt_release(engine)
    except OtherRelease as error:
        return str(error)
    return None
