"""Compare this process's tz release and kernel with those that decide in the database.

Two releases must not decide side by side: each would pass over what the other one scheduled.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

import sqlalchemy as sa

from cron import KERNEL_VERSION, tz_release
from models.errors import Refused
from models.sql import insert_ignoring
from models.store import key_values
from models.store.actions import cursors
from models.store.key_values import KERNEL, TZ_RELEASE
from models.tables import installation
from runtime.logs.events import EventLog

logger = EventLog("minutebook.release")

# The release that is adopted, as long as actions may still be scheduled by an older one.
ADOPTING = "adopting_release"
BATCH = 10_000


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


class OlderRelease(OtherRelease):
    """A newer kernel or tz release than this process's decides in the database."""


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


def stored_release(connection: sa.Connection) -> Release | None:
    """Return the release that decides in this database, None before the first daemon."""
    return _release_of(key_values.values(connection, (KERNEL, TZ_RELEASE)))


def _release_of(known: Mapping[str, str]) -> Release | None:
    return release_in(known.get(KERNEL), known.get(TZ_RELEASE))


def decides_here(connection: sa.Connection) -> bool:
    """Return whether this process's release decides in this database, for all actions."""
    known = key_values.values(connection, (KERNEL, TZ_RELEASE, ADOPTING))
    return ADOPTING not in known and _release_of(known) == own_release()


def adopt_release(engine: sa.Engine) -> bool:
    """Let this process's release decide, and have every action decided anew if an older one did.

    Returns whether it did. Raises OlderRelease if this process's release is the older one.
    """
    own = own_release()
    with engine.begin() as connection:
        is_new = _take_over(connection, own)
        is_adopting = key_values.value(connection, ADOPTING) is not None
    if not is_adopting:
        return is_new
    # A daemon that was killed meanwhile leaves the rest to the next one.
    _reschedule_all(engine)
    with engine.begin() as connection:
        key_values.remove_value(connection, ADOPTING)
    return True


def _take_over(connection: sa.Connection, own: Release) -> bool:
    """Store our release before anything is scheduled by it: decisions by an older one end here.

    Waits for those that began before; see `hold_release`.
    """
    be_first(connection)
    key_values.hold_value(connection, TZ_RELEASE)
    stored = stored_release(connection)
    if stored is None or stored == own:
        return False
    if own.is_older_than(stored):
        raise OlderRelease(
            f"this database was used with {stored}; this daemon has {own}: "
            "upgrade it (the tzdata package) and start again"
        )
    key_values.set_value(connection, ADOPTING, str(own))
    key_values.set_value(connection, KERNEL, str(own.kernel))
    key_values.set_value(connection, TZ_RELEASE, own.tz)
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
    stored = _release_of(key_values.values(connection, (KERNEL, TZ_RELEASE), is_held=True))
    own = own_release()
    if stored is None:
        be_first(connection)
    if stored is None or stored == own:
        return
    if own.is_older_than(stored):
        raise OlderRelease(
            f"this process has {own}, and the daemon of this database {stored}; upgrade it "
            "(the tzdata package) and start it again"
        )
    raise OtherRelease(
        f"this process has {own}, and the daemon of this database {stored}; upgrade the daemon "
        "(the tzdata package) and start it again first"
    )


def why_not_decide(engine: sa.Engine, kernel: str | None, tz: str | None) -> str | None:
    """Return why a tick that found this release must not decide; adopt ours if it is the newer."""
    stored, own = release_in(kernel, tz), own_release()
    if stored is None or stored == own:
        return None
    try:
        # A backup from before the upgrade was restored.
        adopt_release(engine)
    except OlderRelease as error:
        return str(error)
    return None


def _reschedule_all(engine: sa.Engine) -> None:
    logger.warning(
        "kernel_adopted", "new tz release or kernel: the next tick schedules all actions again"
    )
    last: UUID | None = None
    while True:
        with engine.begin() as connection:
            last = cursors.reschedule(connection, BATCH, last)
        if last is None:
            return
