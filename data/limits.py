"""Limits of an import, as plain values: its child process loads no settings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

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
