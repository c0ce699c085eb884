"""Check and migrate the database's schema."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

import migrations
from models.errors import Refused
from models.store import key_values
from runtime.plug_ins import Branch, plug_ins

if TYPE_CHECKING:
    from alembic.config import Config

KERNEL = Branch("", "migrations.versions", "0001_pre_first_release")
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


def branches() -> tuple[Branch, ...]:
    """Return the branches of this installation's migrations, the kernel's first."""
    return (KERNEL, *(one.branch for one in plug_ins() if one.branch is not None))


def needed() -> str:
    """Return the revisions that this release needs, as `migrate` returns them."""
    return _in_words({one: one.head for one in branches()})


def _in_words(revisions: Mapping[Branch, str]) -> str:
    return ", ".join(f"{one.name} {head}".strip() for one, head in revisions.items())


def config_of(branch: Branch, connection: sa.Connection | None = None) -> "Config":
    """Return what Alembic needs to run the migrations of a branch on a connection."""
    from alembic.config import Config

    folder = Path(str(import_module(branch.package).__file__)).parent
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(folder))
    config.attributes.update(connection=connection, version_table=branch.version_table)
    return config


def migrate(engine: sa.Engine) -> tuple[str | None, str]:
    """Upgrade to the newest schema in one transaction; return the revisions before and after.

    The first is None for an empty database. The schema of a newer release stays as it is. Raises
    SchemaNewer, or Refused for an empty database that does not store text as UTF-8.
    """
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        before = _revisions(connection)
        if KERNEL not in before and (encoding := encoding_of(connection)) != UTF8:
            raise Refused(
                f"the database stores text as {encoding}, and Minutebook needs {UTF8}; "
                f"create it with ENCODING '{UTF8}' TEMPLATE template0"
            )
        for branch in branches():
            current = before.get(branch)
            if current != branch.head and not _is_newer(connection, branch, current):
                from alembic import command

                command.upgrade(config_of(branch, connection), "head")
        return _in_words(before) or None, _in_words(_revisions(connection))


def _revisions(connection: sa.Connection) -> dict[Branch, str]:
    found = {one: current_revision(connection, one) for one in branches()}
    return {one: revision for one, revision in found.items() if revision is not None}


def current_revision(connection: sa.Connection, branch: Branch = KERNEL) -> str | None:
    """Return the schema's revision, None for an empty database."""
    if not sa.inspect(connection).has_table(branch.version_table):
        return None
    stored = sa.select(sa.table(branch.version_table, sa.column("version_num")))
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
    for branch in branches():
        current = current_revision(connection, branch)
        if current == branch.head or _is_newer(connection, branch, current):
            continue
        raise SchemaOutdated(
            f"the database's schema is {current or 'empty'}{_whose(branch)}, this release needs "
            f"{branch.head}; run `minutebook migrate`"
        )


def _is_newer(connection: sa.Connection, branch: Branch, current: str | None) -> bool:
    """Return whether a newer release made the schema; raises SchemaNewer if it is unfit for us."""
    # Revisions begin with their numbers.
    if current is None or current <= branch.head:
        return False
    works_from = key_values.value(connection, branch.works_from)
    if works_from is not None and works_from > branch.head:
        raise SchemaNewer(
            f"the database's schema {current}{_whose(branch)} is of a newer release, and works "
            f"with {works_from} or newer, not with {branch.head}; use a newer release"
        )
    return True


def _whose(branch: Branch) -> str:
    return f" for {branch.name}" if branch.name else ""
