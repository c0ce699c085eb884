"""Imports in child processes: a file that exceeds the limits ends only its child."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data.importing import Data, Imported, Rules, import_data
from data.importing.bad_rows import BadRows
from data.settings import FetchSettings
from tasks.bounded import client
from tasks.bounded.child import Call
from tasks.bounded.limits import Exit, Limits, Over


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
    ended: Callable[[Exit], None] | None = None,
) -> Imported:
    """Write the rows of `data` to `target`, as `import_data` does, within the settings' limits.

    `ended` takes what the child process used.
    """
    arguments = {
        "settings": settings.model_dump(mode="json"),
        "format": data.format,
        "shown": data.shown,
        "columns": dict(data.rules.columns),
        "key": data.rules.key,
        "bad_rows": asdict(data.bad_rows),
        "ended_before": data.ended_before,
        "target": str(target),
        "last": None if last is None else str(last),
    }
    with data.opened() as stream:
        call = client.Call(f"{__name__}:answer", arguments, [stream.fileno()])
        limits = reading_limits(settings, data.shown)
        made = client.run(call, limits, data.watch, ended=ended)
    return Imported(made["digest"], made["figures"], BadRows.of_json(made["bad_rows"]))


def answer(call: Call) -> Mapping[str, Any]:
    """Import the file of the call; called in the child."""
    given = call.arguments
    data = Data(
        Path(given["shown"]),
        given["format"],
        given["shown"],
        Rules(given["columns"], tuple(given["key"])),
        call.watch,
        BadRows.of_json(given["bad_rows"]),
        ended_before=given["ended_before"],
    )
    last = None if given["last"] is None else Path(given["last"])
    settings = FetchSettings.model_validate(given["settings"])
    with os.fdopen(call.files[0], "rb") as stream:
        made = import_data(settings, data, stream, Path(given["target"]), last)
    return asdict(made)
