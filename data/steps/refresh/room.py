"""The disk that the snapshots and downloads of a restricted small app may take."""

from pathlib import Path

from data.snapshots import downloads_folder
from data.store.small_apps import stored_bytes
from minutebook.steps import StepFailed
from models.store.tenants.ceilings import MEBIBYTE, exceeded, most_of
from runtime.clock import monotonic
from runtime.database import reading
from tasks.step_context import WorkContext

# The ceiling: its setting, what it counts, and what an editor can do.
WORDS = (
    "disk_mb",
    "MiB of snapshots and downloads",
    "refresh less, let `maintenance` remove old snapshots",
)
# How often a running download is measured.
MEASURED_EVERY_S = 0.2


class Room:
    """What is left of a small app's disk; a ceiling of 0 is none.

    Snapshots are counted in the database, downloads on this machine.
    """

    def __init__(self, context: WorkContext) -> None:
        self._context = context
        self._folder = downloads_folder(context.settings.home, context.small_app.name)
        with reading(context.engine) as connection:
            its = (context.small_app.id, WORDS[0], context.settings.limits)
            self._most_mb = most_of(connection, *its)
        self._stored = 0
        self._measured_at = monotonic()
        self.error: str | None = None

    def check(self, more: int = 0) -> None:
        """Raise StepFailed if too much is taken, with `more` bytes that are not stored yet."""
        if not self._most_mb:
            return
        with reading(self._context.engine) as connection:
            self._stored = stored_bytes(connection, self._context.small_app.id)
        self._measure(more)
        if self.error is not None:
            raise StepFailed(self.error, permanent=True)

    def is_exceeded(self) -> bool:
        """Return whether too much is taken, also by what is being downloaded; from any thread."""
        if self._most_mb and monotonic() >= self._measured_at + MEASURED_EVERY_S:
            self._measure()
        return self.error is not None

    def _measure(self, more: int = 0) -> None:
        self._measured_at = monotonic()
        taken = self._stored + _size_of(self._folder) + more
        if taken > self._most_mb * MEBIBYTE:
            used_mb = -(-taken // MEBIBYTE)
            app = self._context.small_app.name
            self.error = exceeded(app, WORDS, used_mb, self._most_mb)


def _size_of(folder: Path) -> int:
    """Return the size of the files in a folder, of which some may end meanwhile."""
    total = 0
    for file in folder.glob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            continue
    return total
