"""Whether the installation itself works: its daemon, its workers, its queues, its last ticks."""

from pydantic import Field

from models.store import operations, overview
from runtime.database import reading
from views.daemon import Daemon
from views.doctor.disk import Disk, disk_of
from views.installation import Installation
from views.overview.timeline import Ticked, ticked_of
from views.status import DAY, SetAside, Worker, set_aside_in
from views.verdict import Verdict, look
from views.view import Instant, View

TICKS = 120


class Queue(View):
    """A queue with operations in it."""

    queue: str
    waiting: int = Field(description="Operations that no worker has started.")
    running: int
    oldest_at: Instant | None = Field(description="When the longest waiting one was recorded.")
    beaten_at: Instant | None = Field(description="The oldest heartbeat of a running one.")


class Vitals(View):
    """The parts of an installation that must be alive for its actions to run."""

    verdict: Verdict = Field(description="Whether all is well, and what is not.")
    daemon: Daemon | None = Field(description="Null before the first tick.")
    workers: tuple[Worker, ...]
    queues: tuple[Queue, ...] = Field(description="Those with operations, by name.")
    ticks: tuple[Ticked, ...] = Field(description="The last 120, in order.")
    set_aside: tuple[SetAside, ...]
    disk: Disk = Field(description="Of the machine that is asked, measured once a minute.")
    day: dict[str, int] = Field(description="Operations of the last 24 hours, by state.")


def vitals_of(installation: Installation) -> Vitals:
    """Return the vitals of the whole installation."""
    settings = installation.settings
    with reading(installation.engine) as connection:
        now, daemon, verdict, facts = look(connection, settings)
        return Vitals(
            verdict=verdict,
            daemon=daemon,
            workers=tuple(map(Worker.of, facts.readers.live)),
            queues=tuple(map(Queue.of, overview.queues(connection))),
            ticks=tuple(ticked_of(overview.last_ticks(connection, TICKS))),
            set_aside=set_aside_in(connection),
            disk=disk_of(settings),
            day=operations.counts_by_state(connection, now - DAY),
        )
