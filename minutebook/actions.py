"""Actions from code, at the server that settings name.

    from minutebook import actions

    actions.apply({"name": "nightly", "operations": {...}, "when": {"cron_rule": "0 2 * * *"}})
    actions.run("nightly", wait_s=60)

The server, its token and the small app are MINUTEBOOK_URL, MINUTEBOOK_TOKEN and MINUTEBOOK_APP of
Django's settings, else the variables SCHED_URL, SCHED_TOKEN and SCHED_APP. For another server, or
for many calls over one connection, use `minutebook.Client`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from minutebook.client import TIMEOUT_S, Applied, Client, Explanation, Run, path_of

__all__ = ["NotConfigured", "apply", "client", "delete", "explain", "pause", "resume", "run", "url"]


class NotConfigured(Exception):
    """No settings name the server and its token."""


def client(timeout_s: float = TIMEOUT_S) -> Client:
    """Return a client of the configured server; use it as a context manager."""
    url, token, app = (_setting(name) for name in ("URL", "TOKEN", "APP"))
    if not url or not token:
        raise NotConfigured(
            "set MINUTEBOOK_URL and MINUTEBOOK_TOKEN in Django's settings, or the variables"
            " SCHED_URL and SCHED_TOKEN"
        )
    try:
        return Client(url, token, app=app or None, timeout_s=timeout_s)
    except ValueError as error:
        raise NotConfigured(f"MINUTEBOOK_TOKEN or SCHED_TOKEN: {error}") from None


def url() -> str:
    """Return the address of the configured server, empty without one."""
    return _setting("URL").rstrip("/")


def apply(*documents: Mapping[str, Any]) -> list[Applied]:
    """Create or change actions to their documents, all or none; see `Client.apply`."""
    with client() as server:
        return server.apply(documents)


def run(
    action: str, *, user: str | None = None, key: str | None = None, wait_s: float | None = None
) -> Run:
    """Run an action now, by its name or uid; see `Client.run`."""
    with client() as server:
        return server.run(action, user=user, key=key, wait_s=wait_s)


def pause(action: str) -> None:
    """Pause an action."""
    _post(action, "pause")


def resume(action: str) -> None:
    """Resume an action."""
    _post(action, "resume")


def delete(action: str) -> None:
    """Delete an action; its history stays."""
    with client() as server:
        server.call("DELETE", path_of(action))


def explain(action: str, at: str) -> Explanation:
    """Explain why an action ran, or did not run, at an instant; see `Client.explain`."""
    with client() as server:
        return server.explain(action, at)


def _post(action: str, verb: str) -> None:
    with client() as server:
        server.call("POST", f"{path_of(action)}:{verb}")


def _setting(name: str) -> str:
    django = sys.modules.get("django.conf")
    found = getattr(django.settings, f"MINUTEBOOK_{name}", "") if django else ""
    return str(found or os.environ.get(f"SCHED_{name}", ""))
