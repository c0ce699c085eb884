"""The status of an installation: daemon, workers, actions, operations of the last day."""

import socket
from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from models.store import actions, operations, ticks, workers
from models.store.actions.downtime import last_downtime
from runtime.config import Settings
from runtime.database import reading
from runtime.sections.web import WebSettings
from services.daemon import Daemon
from services.doctor.disk import Disk, disk_of
from services.installation import Installation
from services.verbs import READ, Verb
from services.verdict import State, Verdict, assess
from services.view import Instant, Seconds, View

DAY = timedelta(days=1)
READY_WITHIN_S = 10.0


class Part(StrEnum):
    """What a health check may check."""

    DAEMON = "daemon"
    WORKER = "worker"
    WEB = "web"
    VERDICT = "verdict"


class MissedMost(View):
    """An action and the number of its missed occurrences."""

    name: str = Field(description="Name of the action.")
    missed: int = Field(description="How many occurrences it missed.")


class Downtime(View):
    """The last downtime of the daemon, and the results of its occurrences."""

    since: str = Field(description="An instant in UTC.")
    until: str = Field(description="An instant in UTC.")
    occurrences: int = Field(description="Occurrences that were due in it.")
    sent: int = Field(description="Occurrences that were sent late.")
    missed: int = Field(description="Occurrences that were not sent any more.")
    actions: int = Field(description="How many actions missed occurrences.")
    most_missed: tuple[MissedMost, ...] = Field(description="The actions that missed most.")


class Worker(View):
    """A live worker."""

    name: str = Field(description="Its queue and host.")
    queues: str = Field(description="Separated by commas.")
    seen_at: Instant = Field(description="When it was seen last.")
    skew_s: Seconds | None = Field(description="Seconds by which its machine is ahead.")
    follows: Any = Field(description="Celery tasks that it follows, null for none.")
    step_failures: Any = Field(description="Step modules that it could not import, and why.")


class ActionCounts(View):
    """How many actions there are, in all small apps."""

    total: int = Field(description="All of them.")
    active: int = Field(description="Those that are not paused.")
    unhealthy: int = Field(description="Active ones whose last run was bad, or that are overdue.")


class Status(View):
    """The status of an installation."""

    now: Instant = Field(description="By the clock of the database.")
    verdict: Verdict = Field(description="Whether all is well, and what is not.")
    daemon: Daemon | None = Field(description="Null before the first tick.")
    downtime: Downtime | None = Field(description="In the last 24 hours.")
    workers: tuple[Worker, ...] = Field(description="The workers that were seen lately.")
    actions: ActionCounts = Field(description="How many actions there are.")
    operations: dict[str, int] = Field(
        description="How many operations recorded in the last 24 hours are in each state."
    )
    disk: Disk | None = Field(None, description="Of the machine that is asked, once a minute.")


@Verb("show_installation", "GET /api/status", READ, is_of_installation=True)
def status(installation: Installation) -> Status:
    """Show the daemon, workers, and operations of the last day."""
    with reading(installation.engine) as connection:
        return status_in(connection, installation.settings)


def status_in(connection: sa.Connection, settings: Settings) -> Status:
    """Return the status of a database's installation."""
    now, daemon, verdict, _, facts = assess(connection, settings)
    total, active = actions.count(connection)
    return Status(
        now=now,
        verdict=verdict,
        daemon=daemon,
        downtime=last_downtime(connection, now - DAY),
        workers=tuple(map(Worker.of, facts.readers.live)),
        actions=ActionCounts(total=total, active=active, unhealthy=verdict.unhealthy),
        operations=operations.counts_by_state(connection, now - DAY),
        disk=disk_of(settings),
    )


def is_ticking(installation: Installation) -> bool:
    """Return whether a daemon, on any host, ticked within the last two ticks."""
    settings = installation.settings
    with reading(installation.engine) as connection:
        return ticks.has_ticked(connection, "", 2 * settings.scheduler.tick)


def is_alive(installation: Installation, part: Part) -> bool:
    """Return whether this host's daemon, worker or HTTP API is alive, or nothing is broken."""
    if part is Part.WEB:
        return _serves(installation.settings.web)
    if part is Part.VERDICT:
        with reading(installation.engine) as connection:
            return assess(connection, installation.settings).verdict.state is not State.BROKEN
    settings, host = installation.settings, socket.gethostname()
    with reading(installation.engine) as connection:
        if part is Part.DAEMON:
            return ticks.has_ticked(connection, f"{host}:", 2 * settings.scheduler.tick)
        live = workers.live_workers(connection, settings.worker.lease)
    return any(f"@{host}:" in row["name"] for row in live)


def _serves(settings: WebSettings) -> bool:
    """Return whether the HTTP API of this host is ready."""
    from runtime.egress.request import Request, RequestFailed, status_of

    ready = Request(f"{settings.local_url}/readyz", allow_private=True)
    try:
        return status_of(ready, READY_WITHIN_S) == HTTPStatus.NO_CONTENT
    except RequestFailed:
        return False
