"""Reads production in a loop until a file appears; one line for each read: what it saw."""

import json
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from data import snapshots
from data.settings import Settings, settings_in
from data.snapshots.production import look
from runtime.clock import wait_for
from runtime.config import load_settings
from runtime.database import make_engine

# Between two reads: with none, the reader takes the time of those that publish.
PAUSE_S = 0.05


def seen(engine: sa.Engine, settings: Settings) -> dict[str, Any]:
    """Return the version that each part of production says."""
    production = look(engine, "default", "production")
    parts = {
        name: sorted({row["version"] for row in snapshots.read(settings, one.path)})
        for name, one in production.domains.items()
    }
    return {**parts, "design": [production.design["start"]["version"]]}


def main(home: Path, lines: Path, stop: Path) -> None:
    """Read until `stop` exists; what goes wrong is a line too."""
    settings = settings_in(load_settings(home))
    engine = make_engine(settings)
    with lines.open("a", buffering=1) as file:
        while not wait_for(stop.exists, PAUSE_S, poll_s=PAUSE_S):
            try:
                line = seen(engine, settings)
            except Exception as error:  # any error is what the test looks for
                line = {"error": f"{type(error).__name__}: {error}"}
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
