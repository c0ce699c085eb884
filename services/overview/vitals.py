"""What the page of health shows: the status, with its queues and its last ticks."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from models.store import overview
from runtime.database import reading
from services.installation import Installation
from services.status import Status, status_in
from services.status.pauses import QueueRow, queues_in
from services.view import Instant, Seconds, View

TICKS = 120


class Ticked(View):
    """One tick of the daemon."""

    at: Instant = Field(description="The instant up to which it decided.")
    lag_s: Seconds = Field(description="Seconds from that instant to its end.")
    duration_ms: float
    recorded: int = Field(description="Operations that it recorded.")


class Vitals(Status):
    """The status of an installation, with its queues and its last ticks."""

    queues: tuple[QueueRow, ...] = Field(description="Those with operations or workers.")
    ticks: tuple[Ticked, ...] = Field(description="The last 120, in order.")


def vitals_of(installation: Installation) -> Vitals:
    """Return the vitals of the whole installation."""
    settings = installation.settings
    with reading(installation.engine) as connection:
        return Vitals(
            **dict(status_in(connection, settings)),
            queues=queues_in(connection, settings.worker.lease).root,
            ticks=tuple(map(_ticked, overview.last_ticks(connection, TICKS))),
        )


def _ticked(row: Mapping[str, Any]) -> Ticked:
    # A report may not be readable.
    recorded = row["report"].get("recorded", 0)
    return Ticked(
        at=row["now"],
        lag_s=round((row["finished_at"] - row["now"]).total_seconds(), 3),
        duration_ms=row["duration_ms"],
        recorded=recorded if isinstance(recorded, int) else 0,
    )
