"""Snapshots as JSON Lines, written by a child process: the memory of this one does not grow."""

import os
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path

from data import snapshots
from data.limits import ImportLimits, reading_limits
from data.settings import Settings
from data.snapshots.json_rows import json_line
from tasks.bounded import client
from tasks.bounded.child import Call


def read(settings: Settings, path: str) -> Generator[bytes]:
    """Yield the rows of the snapshot at `path` in pieces of JSON Lines, as they are taken.

    Raises SourceFailed, also after some pieces.
    """
    fetch, time_s = settings.fetch, settings.web.download_s
    limits = reading_limits(fetch, "the snapshot", time_s, "SCHED_WEB_DOWNLOAD_S")
    with snapshots.local(settings, path) as file:
        arguments = {"file": str(file), "limits": asdict(ImportLimits.of(fetch))}
        call = client.Call(f"{__name__}:write", arguments)
        yield from client.stream(call, limits)


def write(call: Call) -> None:
    """Write the rows of the call's file to its output; called in the child."""
    # The process that calls needs no DuckDB.
    from data.importing.read_parquet import rows_of

    limits = ImportLimits(**call.arguments["limits"])
    with os.fdopen(call.files[0], "wb", client.PIECE) as output:
        for row in rows_of(Path(call.arguments["file"]), "the snapshot", limits):
            output.write(json_line(row).encode() + b"\n")
