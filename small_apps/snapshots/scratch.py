"""A folder of one import's own, gone at its end; a killed one leaves it to maintenance."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

FOLDER = "scratch"


@contextmanager
def scratch(home: Path, app_folder: str) -> Iterator[Path]:
    """Yield a new, empty folder that nobody else uses."""
    made = home / FOLDER / app_folder / str(uuid4())
    made.mkdir(parents=True)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
