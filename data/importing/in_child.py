"""Imports in child processes: a file that exceeds the limits ends only its child."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from data.importing import Data, Imported, import_data
from data.settings import FetchSettings
from tasks.bounded import client
from tasks.bounded.child import Call
from tasks.bounded.limits import Limits, Over, Watch

GIVEN = TypeAdapter(tuple[FetchSettings, Data, Path, Path | None])
IMPORTED = TypeAdapter(Imported)


def reading_limits(settings: FetchSettings, shown: str, time: str = "import_s") -> Limits:
    """Return the limits of a child that reads `shown`; `time` is a setting, such as `import_s`."""
    names = {
        Over.MEMORY: "SCHED_FETCH_MEMORY_MB",
        Over.CPU: "SCHED_FETCH_CPU_S",
        Over.TIME: f"SCHED_FETCH_{time.upper()}",
    }
    time_s = getattr(settings, time)
    return Limits(settings.memory_mb, settings.cpu_s, time_s, names, shown=shown)


def import_in_child(
    settings: FetchSettings,
    data: Data,
    target: Path,
    last: Path | None,
    watch: Watch,
) -> Imported:
    """Write the rows of `data` to `target`, as `import_data` does, within the settings' limits."""
    given = GIVEN.dump_python((settings, data, target, last), mode="json")
    with data.opened() as stream:
        call = client.Call(f"{__name__}:answer", {"given": given}, [stream.fileno()])
        made = client.run(call, reading_limits(settings, data.shown), watch)
    return IMPORTED.validate_python(made)


def answer(call: Call) -> Mapping[str, Any]:
    """Import the file of the call; called in the child."""
    settings, data, target, last = GIVEN.validate_python(call.arguments["given"])
    with os.fdopen(call.files[0], "rb") as stream:
        made = import_data(settings, data, stream, target, last, call.watch)
    return asdict(made)
