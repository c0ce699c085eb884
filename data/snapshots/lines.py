"""Snapshots as JSON Lines, written by a child process: the memory of this one does not grow."""

from collections.abc import Generator

from data import snapshots
from data.settings import Settings
from tasks.bounded import client
from tasks.bounded.limits import Limits, Over

SETTINGS = {
    Over.MEMORY: "SCHED_FETCH_MEMORY_MB",
    Over.CPU: "SCHED_FETCH_CPU_S",
    Over.TIME: "SCHED_WEB_DOWNLOAD_S",
}


def read(settings: Settings, path: str) -> Generator[bytes]:
    """Yield the rows of the snapshot at `path` in pieces of JSON Lines, as they are taken.

    Raises SourceFailed, also after some pieces.
    """
    fetch = settings.fetch
    limits = Limits(
        fetch.memory_mb, fetch.cpu_s, settings.web.download_s, SETTINGS, shown="the snapshot"
    )
    with snapshots.local(settings, path) as file:
        arguments = {"file": str(file), "settings": fetch.model_dump(mode="json")}
        call = client.Call("data.snapshots.lines_child:write", arguments)
        yield from client.stream(call, limits)
