"""Imports in child processes: a file that exceeds the limits ends only its child."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from data.bad_rows import BadRows
from data.importing import Data, Imported, answer
from data.limits import ImportLimits, reading_limits
from data.settings import FetchSettings
from tasks.bounded import client
from tasks.bounded.limits import Watch


def import_in_child(
    settings: FetchSettings,
    data: Data,
    target: Path,
    last: Path | None,
    watch: Watch,
) -> Imported:
    """Write the rows of `data` to `target`, as `import_data` does, within the settings' limits."""
    given = given_of(settings, data, target, last)
    with data.opened() as stream:
        call = client.Call(f"{answer.__module__}:answer", given, [stream.fileno()])
        limits = reading_limits(settings, data.shown, settings.import_s, "SCHED_FETCH_IMPORT_S")
        made = client.run(call, limits, watch)
    return Imported(made["digest"], made["figures"], BadRows.of(made["bad_rows"]))


def given_of(
    settings: FetchSettings, data: Data, target: Path, last: Path | None
) -> dict[str, Any]:
    """Return the arguments of the child's call."""
    limits = asdict(ImportLimits.of(settings))
    return {"limits": limits, "data": asdict(data), "target": target, "last": last}
