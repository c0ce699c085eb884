"""Read-only access to the database of another scheduler."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from models.errors import Refused
from runtime.postgresql import only_read

CONNECT_S = 10
REMEDY = "write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"
POSTGRESQL = {"postgres", "postgresql", "postgresql+psycopg", "postgresql+psycopg2"}


@contextmanager
def foreign_database(text: str) -> Iterator[sa.Connection]:
    """Yield a connection that cannot write; raises Refused, without the URL's password."""
    engine = _engine(_url(text))
    try:
        with engine.connect() as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        raise Refused(f"the database cannot be read: {lines[0]}; check its URL") from None
    finally:
        engine.dispose()


def database_of(text: str) -> str:
    """Return the name of a database or a file, without host, account and password."""
    if "://" not in text:
        return Path(text).stem
    url = _url(text)
    name = Path(url.database or "").stem
    return name if url.drivername.startswith(("sqlite", "postgres")) else f"{url.host}-{name or 0}"


def _url(text: str) -> sa.URL:
    try:
        return sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise Refused(f"the URL is not understood; {REMEDY}") from None


def _engine(url: sa.URL) -> sa.Engine:
    if url.drivername in POSTGRESQL:
        arguments = {"connect_timeout": CONNECT_S}
        url = url.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url, connect_args=arguments)
        only_read(engine, "timezone = 'UTC'")
        return engine
    if url.drivername in {"sqlite", "sqlite+pysqlite"}:
        path = Path(url.database or "")
        if not path.is_file():
            raise Refused(f"there is no file {str(path)!r}; {REMEDY}")
        # Opened as a read-only file: nothing is made or changed.
        opened = f"file:{quote(str(path.absolute()))}?mode=ro"
        return sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(opened, uri=True))
    raise Refused(f"{url.drivername} is not supported; {REMEDY}")
