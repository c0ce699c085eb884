"""What SQLAlchemy compiled for one test is there for the next.

It keeps this by engine, and each test has an engine of its own: a fifth of the processor's time.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.util import LRUCache

from runtime.database import written_json

MOST = 2_000


class _OfAllEngines(LRUCache[Any, Any]):
    """A cache that takes engines of the same kind, of the same server, for one."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_kind(key), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__(_of_kind(key), compiled)


def _of_kind(key: Any) -> Any:
    dialect, *rest = key
    release = getattr(dialect, "server_version_info", None)
    return type(dialect), release, *rest


def share_compiled() -> None:
    """Let all of our engines in this process share what is compiled.

    Those of others' databases may not: two have tables of one name with different columns.
    """
    cache = _OfAllEngines(MOST)

    @sa.event.listens_for(sa.Engine, "engine_connect")
    def _share(connection: sa.Connection) -> None:
        if connection.dialect._json_serializer is written_json:
            connection.execution_options(compiled_cache=cache)
