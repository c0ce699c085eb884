"""The daemon that ticked last."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from models.store import ticks
from runtime.config import Settings
from services.view import Instant, Seconds, View


class Daemon(View):
    """The daemon that ticked last."""

    name: str = Field(description="Its host and process id.")
    last_tick_at: Instant = Field(description="When its last tick began.")
    is_ticking: bool = Field(description="Whether its last tick is less than two ticks ago.")
    tick_s: Seconds = Field(description="How long its last tick took.")
    stopped_at: Instant | None = Field(description="When it was stopped in order, else null.")
    clock_skew_s: Seconds = Field(
        description="Seconds by which its machine is ahead of the database"
    )
    report: Any = Field(description="What its last tick did.")


def daemon_in(connection: sa.Connection, settings: Settings, now: datetime) -> Daemon | None:
    """Return the daemon that ticked last, None before the first tick."""
    tick = ticks.last(connection)
    if tick is None:
        return None
    stopped_at = tick["stopped_at"]
    age = abs(now - tick["finished_at"])
    return Daemon(
        name=tick["daemon"],
        last_tick_at=tick["finished_at"],
        is_ticking=stopped_at is None and age <= 2 * settings.scheduler.tick,
        tick_s=(tick["duration_ms"] or 0.0) / 1000,
        stopped_at=stopped_at,
        clock_skew_s=tick["report"].get("clock_skew_s", 0.0),
        report=tick["report"],
    )
