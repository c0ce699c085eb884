"""Bring a database to this release's schema."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import migrations
from models.errors import SchedulerError
from models.tables import metadata

# Any fixed number: two processes that migrate at once take turns.
MIGRATION_LOCK = 5_061_990


class SchemaOutdated(SchedulerError):
    """The database does not have this release's schema."""


def _config(connection: sa.Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config


def migrate(engine: sa.Engine) -> tuple[str | None, str | None]:
    """Upgrade to the newest schema; return the revision before and after, None for none.

    Everything is one transaction: a migration that fails changes nothing.
    """
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        before = current_revision(connection)
        command.upgrade(_config(connection), "head")
        return before, current_revision(connection)


def current_revision(connection: sa.Connection) -> str | None:
    """Return the schema's revision, None for an empty database."""
    return MigrationContext.configure(connection).get_current_revision()


def check_schema(connection: sa.Connection) -> None:
    """Raise SchemaOutdated unless the schema is this release's."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    current = current_revision(connection)
    if current != head:
        raise SchemaOutdated(
            f"the database's schema is {current or 'empty'}, this release needs {head}; "
            "run `minutehand migrate`"
        )


def differences(connection: sa.Connection) -> list[object]:
    """Return what the database's schema has otherwise than `models.tables`."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, metadata))
