"""Apply the documents of files; errors name the file of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.changes.validation import Watch, unwatched
from views import changes
from views.changes.result import Changes
from views.door import Door
from views.files import files_in, naming_each, read_documents


@dataclass(frozen=True, slots=True)
class Files:
    """Documents with their places; with `prune`, an owner, they are all that the owner has."""

    documents: Sequence[object]
    places: Sequence[str]
    prune: str | None = None

    @classmethod
    def read(cls, paths: Sequence[Path], prune: str | None = None) -> "Files":
        """Read files and folders; raises InvalidDocument, and Refused for an empty folder.

        With `prune` a folder may be empty: the owner has nothing then.
        """
        files = files_in(paths, may_be_empty=prune is not None)
        located = [one for file in files for one in read_documents(file)]
        return cls([one for _, one in located], [place for place, _ in located], prune)

    def apply(
        self, door: Door, *, details: bool, watch: Watch = unwatched, dry_run: bool = False
    ) -> Changes:
        """Apply them; see `changes.apply`."""
        with naming_each(self.places):
            return door.ask(
                changes.apply,
                self.documents,
                details=details,
                prune=self.prune,
                dry_run=dry_run,
                watch=watch,
            )
