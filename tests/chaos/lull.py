"""The lull after a storm: no more faults, as much work as before, and a look at who idles."""

from collections.abc import Callable
from threading import Event

import sqlalchemy as sa

from models.tables import operations
from runtime.clock import monotonic, utc_now
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.chaos.crew import PROCESSES
from tests.chaos.journal import Journal

LOOK_S = 0.25
# Meanwhile the leases of the storm's victims run out, and who was killed is ready again.
SETTLES_S = 12.0

_running = operations.alias("running")
_its_other = sa.exists().where(
    _running.c.overlap_key == operations.c.overlap_key, _running.c.state == "running"
)
# What any free process could start. Of what the storm saw sent, the message may be lost.
_WAITING = sa.select(operations.c.id).where(
    operations.c.waiting_for.is_(None),
    ~_its_other,
    sa.or_(
        sa.and_(operations.c.state == "queued", operations.c.queued_at > sa.bindparam("since")),
        sa.and_(operations.c.state == "pending", operations.c.turn == "waits"),
    ),
)
# A turn is a process. What the storm saw sent has one until its message is sent again, and what a
# killed daemon was sending, until its reservation ends.
_HOLD_A_PROCESS = sa.select(sa.func.count()).where(
    sa.or_(
        operations.c.state == "running",
        sa.and_(
            operations.c.turn == "taken",
            sa.or_(
                operations.c.state == "pending",
                sa.and_(
                    operations.c.state == "queued",
                    operations.c.queued_at <= sa.bindparam("since"),
                ),
            ),
        ),
    )
)


def look_on(
    installation: Installation, journal: Journal, seconds: float, tend: Callable[[], None]
) -> None:
    """Note for so long what waits beside how many processes that something holds."""
    until = monotonic() + SETTLES_S
    while monotonic() < until:
        tend()
        Event().wait(LOOK_S)
    since = installation.now()
    until = monotonic() + seconds
    while monotonic() < until:
        tend()
        with reading(installation.engine) as connection:
            waiting = connection.execute(_WAITING, {"since": since}).scalars().all()
            held = connection.execute(_HOLD_A_PROCESS, {"since": since}).scalar_one()
        journal.note(
            "look",
            at=utc_now().timestamp(),
            waiting=[str(id) for id in waiting],
            held=held,
            processes=PROCESSES,
        )
        Event().wait(LOOK_S)
