"""The storm's record of its own acts for the checker: one line of JSON for each fact."""

import json
import os
from pathlib import Path


class Journal:
    """An append-only file; several threads may write to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, **values: object) -> None:
        """Append one fact: instants as seconds since 1970, ids as text."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, (json.dumps({"what": what, **values}) + "\n").encode())
        finally:
            os.close(file)
