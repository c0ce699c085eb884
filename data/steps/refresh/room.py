"""The disk that the snapshots and downloads of a restricted small app may take."""

from pathlib import Path

from data.snapshots import downloads_folder
from data.store.small_apps import stored_bytes
from minutebook.steps import StepFailed
from models.store.tenants.ceilings import MEBIBYTE, exceeded, most_of
from runtime.database import reading
from tasks.step_context import WorkContext

# The ceiling: its setting, what it counts, and what an editor can do.
WORDS = (
    "disk_mb",
    "MiB of snapshots and downloads",
    "refresh less, let `maintenance` remove old snapshots",
)


class Room:
    """What is left of a small app's disk; a ceiling of 0 is none.

    Snapshots are counted in the database, downloads on this machine.
    """

    def __init__(self, context: WorkContext) -> None:
        self._context = context
        with reading(context.engine) as connection:
            its = (context.small_app.id, WORDS[0], context.settings.limits)
            self._most_mb = most_of(connection, *its)

    def check(self, more: int = 0) -> None:
        """Raise StepFailed if too much is taken, with `more` bytes that are not stored yet."""
        if not self._most_mb:
            return
        app = self._context.small_app
        with reading(self._context.engine) as connection:
            stored = stored_bytes(connection, app.id)
        taken = stored + _size_of(downloads_folder(self._context.settings.home, app.name)) + more
        if taken > self._most_mb * MEBIBYTE:
            text = exceeded(app.name, WORDS, -(-taken // MEBIBYTE), self._most_mb)
            raise StepFailed(text, permanent=True)


def _size_of(folder: Path) -> int:
    """Return the size of the files in a folder, of which some may end meanwhile."""
    total = 0
    for file in folder.glob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            continue
    return total
