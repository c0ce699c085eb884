"""The child process that writes a snapshot as JSON Lines."""

import os
from pathlib import Path

from data.importing.read_parquet import rows_of
from data.settings import FetchSettings
from data.snapshots.json_rows import json_line
from tasks.bounded.child import Call

BUFFER = 1 << 16


def write(call: Call) -> None:
    """Write the rows of the call's file to its output; called in the child."""
    settings = FetchSettings.model_validate(call.arguments["settings"])
    with os.fdopen(call.files[0], "wb", BUFFER) as output:
        for row in rows_of(Path(call.arguments["file"]), "the snapshot", settings):
            output.write(json_line(row).encode() + b"\n")
