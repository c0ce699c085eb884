"""Check and migrate the database's schema."""

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

import migrations
from models.errors import Refused, SchedulerError

if TYPE_CHECKING:
    from alembic.config import Config

# The newest of `migrations/versions`; asking Alembic would delay each start by 0.1 s.
HEAD = "0022_pre_backfill_id"
# Any fixed number: concurrent migrations take turns.
MIGRATION_LOCK = 5_061_990
UTF8 = "UTF8"


class SchemaOutdated(SchedulerError):
    """The database does not have this release's schema."""


class SchemaNewer(SchedulerError):
    """The database has the schema of a newer release."""


def _config(connection: sa.Connection | None = None) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config


def migrate(engine: sa.Engine) -> tuple[str | None, str | None]:
    """Upgrade to the newest schema in one transaction; return the revisions before and after.

    The first is None for an empty database. Raises SchemaNewer, or Refused for an empty database
    that does not store text as UTF-8.
    """
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        before = current_revision(connection)
        if before == HEAD:
            return before, before
        _check_is_not_newer(before)
        encoding = encoding_of(connection)
        if before is None and encoding != UTF8:
            raise Refused(
                f"the database stores text as {encoding}, and Minutebook needs {UTF8}; "
                f"create it with ENCODING '{UTF8}' TEMPLATE template0"
            )
        from alembic import command

        command.upgrade(_config(connection), "head")
        return before, current_revision(connection)


def current_revision(connection: sa.Connection) -> str | None:
    """Return the schema's revision, None for an empty database."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.execute(sa.text("SELECT version_num FROM alembic_version"))
    return revision.scalar_one_or_none()


def encoding_of(connection: sa.Connection) -> str:
    """Return the encoding in which the database stores text."""
    if connection.dialect.name == "sqlite":
        return UTF8
    return str(connection.execute(sa.text("SHOW server_encoding")).scalar_one())


def check_schema(connection: sa.Connection) -> None:
    """Raise SchemaOutdated or SchemaNewer unless the schema is this release's."""
    current = current_revision(connection)
    _check_is_not_newer(current)
    if current != HEAD:
        raise SchemaOutdated(
            f"the database's schema is {current or 'empty'}, this release needs {HEAD}; "
            "run `minutebook migrate`"
        )


def _check_is_not_newer(current: str | None) -> None:
    # Revisions begin with their numbers.
    if current is not None and current > HEAD:
        raise SchemaNewer(
            f"the database's schema {current} is of a newer release than {HEAD}; use that release"
        )
