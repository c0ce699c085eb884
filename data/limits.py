"""Limits of the children that read data. They load no settings: they get plain values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tasks.bounded.limits import Limits, Over

if TYPE_CHECKING:
    from data.settings import FetchSettings


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """What an import may use and leave out."""

    max_bytes: int
    max_bad_rows: float
    memory_mb: int
    threads: int

    @classmethod
    def of(cls, settings: "FetchSettings") -> Self:
        """Return those of the settings."""
        return cls(settings.max_bytes, settings.max_bad_rows, settings.memory_mb, settings.threads)


def reading_limits(settings: "FetchSettings", shown: str, time_s: float, setting: str) -> Limits:
    """Return the limits of a child that reads `shown`; `setting` is that of its time."""
    cpu, memory = "SCHED_FETCH_CPU_S", "SCHED_FETCH_MEMORY_MB"
    names = {Over.MEMORY: memory, Over.CPU: cpu, Over.TIME: setting}
    return Limits(settings.memory_mb, settings.cpu_s, time_s, names, shown=shown)
