"""Where a command of the application's environment writes, and what its application prints."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from typing import Any


def add_output(parser: ArgumentParser) -> None:
    """Add the option that names a file."""
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: stdout)")


class Output:
    """A file, or stdout, which from now on is stderr for all else that this process prints.

    What an application prints while it is imported, or at the end, does not enter the file.
    """

    def __init__(self, path: str | None) -> None:
        # Named before the working directory changes.
        self._path = path and os.path.abspath(path)
        sys.stdout.flush()
        self._stdout = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def write(self, document: Any) -> None:
        """Write a document as JSON: a file whole, or not at all."""
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if self._path is None:
            with open(self._stdout, "wb") as stdout:
                stdout.write(text.encode())
            return
        temporary = f"{self._path}.{os.getpid()}.new"
        try:
            with open(temporary, "wb") as file:
                file.write(text.encode())
            os.replace(temporary, self._path)
        except BaseException:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise
