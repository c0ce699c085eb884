"""Commits of claims that PostgreSQL was told to make, and makes only when a test lets it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

SLOW_COMMIT = """
CREATE FUNCTION wait_for_seven() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow_commit AFTER UPDATE ON operations DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.state = 'running' AND OLD.state <> 'running')
EXECUTE FUNCTION wait_for_seven();
"""
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@contextmanager
def held_claims(engine: sa.Engine) -> Iterator[Callable[[], bool]]:
    """Hold the commits of claims during the block; yield whether one waits."""
    with engine.begin() as connection:
        connection.exec_driver_sql(SLOW_COMMIT)
    with engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7)")
        yield lambda: connection.exec_driver_sql(WAITING).scalar() == 1
