"""Settings of the daemon, the workers, the history that is kept, and log lines."""

from datetime import timedelta
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, field_validator, model_validator

from runtime.extras import extras
from runtime.sections import Names, Section

if TYPE_CHECKING:
    from minutebook.lease import Limits

LEAST_DOWNTIME = timedelta(seconds=10)


class SchedulerSettings(Section):
    """The daemon's loop."""

    tick_seconds: int = Field(60, description="seconds between ticks; a divisor of 60")
    batch_size: int = Field(1000, ge=1, le=10_000, description="actions decided in one transaction")

    @field_validator("tick_seconds")
    @classmethod
    def _divides_the_minute(cls, value: int) -> int:
        if value < 1 or 60 % value:
            raise ValueError("must be 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60")
        return value

    @property
    def tick(self) -> timedelta:
        """The time from one tick to the next."""
        return timedelta(seconds=self.tick_seconds)

    @property
    def longest_gap(self) -> timedelta:
        """The longest time between two ticks that is no downtime.

        A busy machine may delay a tick by seconds.
        """
        return max(2 * self.tick, LEAST_DOWNTIME)


class WorkerSettings(Section):
    """Celery workers and their leases."""

    heartbeat_s: float = Field(10, gt=0, le=300, description="seconds between heartbeats")
    lease_s: float = Field(
        45, gt=0, le=3600, description="seconds after which a silent run is lost"
    )
    stop_grace_s: float = Field(
        5, ge=0, le=600, description="seconds a stopping worker lets steps end"
    )
    cancel_grace_s: float = Field(
        30, ge=0, le=600, description="seconds a cancelled step has to end"
    )
    soft_limit_s: float = Field(
        10, ge=0, le=600, description="seconds after its time limit until a step is interrupted"
    )
    hard_limit_s: float = Field(
        30, ge=0, le=600, description="seconds after its time limit until its process is ended"
    )
    quick: int = Field(2, ge=1, le=256, description="processes of the quick worker")
    heavy: int = Field(1, ge=1, le=256, description="processes of the heavy worker")
    default: int = Field(2, ge=1, le=256, description="processes of the worker for bulk work")
    extras: Names = Field(
        (), description="extras that the workers have and this process may lack, such as data"
    )

    @field_validator("extras")
    @classmethod
    def _known_extras(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if one not in (known := extras()):
                raise ValueError(f"{one!r} is not an extra of workers; write {' or '.join(known)}")
        return value

    @model_validator(mode="after")
    def _three_heartbeats(self) -> Self:
        if self.lease_s < 3 * self.heartbeat_s:
            raise ValueError(
                f"lease_s {self.lease_s:g} is under three heartbeats of {self.heartbeat_s:g} s; "
                f"set it to {3 * self.heartbeat_s:g} or more"
            )
        return self

    @model_validator(mode="after")
    def _soft_before_hard(self) -> Self:
        if self.hard_limit_s < self.soft_limit_s:
            raise ValueError(
                f"hard_limit_s {self.hard_limit_s:g} is under soft_limit_s {self.soft_limit_s:g}"
            )
        return self

    @property
    def lease(self) -> timedelta:
        """How long a worker may be silent before it counts as gone."""
        return timedelta(seconds=self.lease_s)

    def limits(self, time_limit: timedelta) -> "Limits":
        """Return the limits of an attempt, by the time limit of its action."""
        from minutebook.lease import Limits

        return Limits(
            time_limit.total_seconds(),
            self.heartbeat_s,
            self.cancel_grace_s,
            self.soft_limit_s,
            self.hard_limit_s,
        )


class RetentionSettings(Section):
    """How long history is kept."""

    operations_days: int = Field(90, ge=1, description="finished runs, attempts, log lines")

    @property
    def kept_for(self) -> timedelta:
        """How long operations are kept."""
        return timedelta(days=self.operations_days)


class LogSettings(Section):
    """Log lines on stderr."""

    format: Literal["text", "json"] = Field(
        "text", description="text for people, json for machines"
    )
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="least level shown"
    )
