"""SQL sources: one read-only query on a configured connection, in a child process, streamed."""

from dataclasses import replace
from pathlib import Path

from data.bad_rows import BadRows
from data.children.query import CONNECT_S
from data.failures import SourceFailed
from data.limits import reading_limits
from data.settings import Settings
from models.hints import unknown_name
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from tasks.bounded import client
from tasks.bounded.limits import GRACE_S, Watch

CHILD = "data.children.query"


def query(sql: str, name: str, target: Path, settings: Settings, watch: Watch) -> BadRows:
    """Write the rows of `sql` on the connection `name` to `target`, as JSON Lines.

    Return the rows left out. Raises SourceFailed, and Stopped after ending the query on the server.
    """
    arguments = {
        "sql": sql,
        "name": name,
        "url": _url(name, settings),
        "target": str(target),
        "timeout_s": settings.fetch.timeout_s,
        "max_bytes": settings.fetch.max_bytes,
    }
    call = client.Call(f"{CHILD}:answer", arguments, is_online=True)
    time_s, setting = settings.fetch.timeout_s, "SCHED_FETCH_TIMEOUT_S"
    limits = reading_limits(settings.fetch, f"connection {name}", time_s, setting)
    limits = replace(limits, slack_s=CONNECT_S + GRACE_S)
    return BadRows.of(client.run(call, limits, watch))


def _url(name: str, settings: Settings) -> str:
    """Return the URL of a connection, its reference resolved. Raises SourceFailed."""
    known = settings.connections
    if name not in known:
        text = unknown_name("connection", name, known)
        raise SourceFailed(f'connection "{name}" {text}', permanent=True)
    try:
        return resolved(known[name].get_secret_value(), OF_SETTINGS)
    except SecretMissing as error:
        raise SourceFailed(f"connection {name}: {error}") from None
