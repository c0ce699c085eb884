"""The database engine of a worker's process."""

from functools import lru_cache

import sqlalchemy as sa

from runtime.config import Settings
from runtime.database import make_engine


@lru_cache(maxsize=1)
def engine_of(_pid: int, settings: Settings) -> sa.Engine:
    """Return the engine of the process with that pid, made at the first call."""
    # By pid: a forked child must not share its parent's connections.
    return make_engine(settings)
