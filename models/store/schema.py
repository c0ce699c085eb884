"""Check and migrate the database's schema."""

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

import migrations
from models.errors import Refused
from models.store import key_values

if TYPE_CHECKING:
    from alembic.config import Config

# The newest of `migrations/versions`; asking Alembic would delay each start by 0.1 s.
HEAD = "0001_pre_first_release"
# Not Alembic's own name: an application that shares the database may use that.
VERSION_TABLE = "minutebook_version"
# The fact that names the oldest schema whose code works with the database.
WORKS_FROM = "schema_works_from"
# Any fixed number: concurrent migrations take turns.
MIGRATION_LOCK = 5_061_990
UTF8 = "UTF8"


class UnfitSchema(Refused):
    """The database does not have this release's schema."""

    remedy = "run `minutebook migrate`"


class SchemaOutdated(UnfitSchema):
    """The database is empty, or has the schema of an older release."""


class SchemaNewer(UnfitSchema):
    """A newer release removed from the schema what this one uses."""

    remedy = "upgrade Minutebook here"


def _config(connection: sa.Connection | None = None) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes.update(connection=connection, version_table=VERSION_TABLE)
    return config


def migrate(engine: sa.Engine) -> tuple[str | None, str | None]:
    """Upgrade to the newest schema in one transaction; return the revisions before and after.

    The first is None for an empty database. The schema of a newer release stays as it is. Raises
    SchemaNewer, or Refused for an empty database that does not store text as UTF-8.
    """
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        before = current_revision(connection)
        if before == HEAD or _is_newer(connection, before):
            return before, before
        if before is None and (encoding := encoding_of(connection)) != UTF8:
            raise Refused(
                f"the database stores text as {encoding}, and Minutebook needs {UTF8}; "
                f"create it with ENCODING '{UTF8}' TEMPLATE template0"
            )
        from alembic import command

        command.upgrade(_config(connection), "head")
        return before, current_revision(connection)


def current_revision(connection: sa.Connection) -> str | None:
    """Return the schema's revision, None for an empty database."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    stored = sa.select(sa.table(VERSION_TABLE, sa.column("version_num")))
    return connection.execute(stored).scalar_one_or_none()


def encoding_of(connection: sa.Connection) -> str:
    """Return the encoding in which the database stores text."""
    if connection.dialect.name == "sqlite":
        return UTF8
    return str(connection.execute(sa.text("SHOW server_encoding")).scalar_one())


def check_schema(connection: sa.Connection) -> None:
    """Raise UnfitSchema unless this release works with the database's schema.

    It does with a newer one too, until a migration of the kind `post` removed what it uses.
    """
    current = current_revision(connection)
    if _is_newer(connection, current) or current == HEAD:
        return
    raise SchemaOutdated(
        f"the database's schema is {current or 'empty'}, this release needs {HEAD}; "
        "run `minutebook migrate`"
    )


def _is_newer(connection: sa.Connection, current: str | None) -> bool:
    """Return whether a newer release made the schema; raises SchemaNewer if it is unfit for us."""
    # Revisions begin with their numbers.
    if current is None or current <= HEAD:
        return False
    works_from = key_values.value(connection, WORKS_FROM)
    if works_from is not None and works_from > HEAD:
        raise SchemaNewer(
            f"the database's schema {current} is of a newer release, and works with {works_from} "
            f"or newer, not with {HEAD}; use a newer release"
        )
    return True
