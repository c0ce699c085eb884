"""The migrated schema is what `models.tables` says, and what the last release can go on with."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from models.store import key_values
from models.store.schema import (
    SchemaNewer,
    SchemaOutdated,
    branches,
    check_schema,
    config_of,
    current_revision,
    migrate,
    needed,
)
from models.tables import operations, schema, small_apps
from runtime.config import Settings, load_settings
from runtime.database import make_engine, reading
from runtime.plug_ins import Branch
from tests.factories import make_action, make_operation
from tests.servers import PostgreSQL
from tests.transactions import fetched


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """An engine on a database without any table."""
    environ = {}
    if request.param == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        name = f"empty_{tmp_path.name[-20:].lower().replace('-', '_')}"
        server.execute(f"CREATE DATABASE {name}")
        environ = {"SCHED_DATABASE_URL": server.url(name)}
    engine = make_engine(load_settings(tmp_path, environ))
    yield engine
    engine.dispose()


@pytest.fixture(params=branches(), ids=lambda one: one.name or "kernel")
def branch(request: pytest.FixtureRequest) -> Branch:
    found: Branch = request.param
    return found


def differences(connection: sa.Connection) -> list[object]:
    """Return the differences between the database's schema and `models.tables`."""
    dialect = connection.dialect.name
    versions = {branch.version_table for branch in branches()}

    def belongs(item: Any, name: str, *_: object) -> bool:
        return name not in versions and bool(item.info.get("only", dialect) == dialect)

    opts = {"compare_type": True, "include_object": belongs}
    context = MigrationContext.configure(connection, opts=opts)
    return list(compare_metadata(context, schema()))


def test_the_migrated_schema_equals_the_tables(engine: sa.Engine) -> None:
    with reading(engine) as connection:
        assert differences(connection) == []
        check_schema(connection)


def test_the_newest_migration_is_the_one_that_this_release_needs(branch: Branch) -> None:
    assert ScriptDirectory.from_config(config_of(branch)).get_current_head() == branch.head


def test_the_migrated_checks_are_those_of_the_tables(empty: sa.Engine) -> None:
    migrate(empty)
    migrated = _checks(empty)
    with empty.begin() as connection:
        schema().drop_all(connection)
        schema().create_all(connection)

    assert migrated == _checks(empty)


def _checks(engine: sa.Engine) -> dict[str, set[tuple[object, str]]]:
    inspector = sa.inspect(engine)
    return {
        table.name: {
            (one["name"], one["sqltext"]) for one in inspector.get_check_constraints(table.name)
        }
        for table in schema().sorted_tables
    }


def test_several_processes_may_migrate_at_once(empty: sa.Engine) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: migrate(empty), range(4)))

    assert sorted(results, key=str) == [(needed(), needed())] * 3 + [(None, needed())]


def test_the_versions_of_an_application_in_the_same_database_are_not_ours(
    empty: sa.Engine,
) -> None:
    with empty.begin() as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES ('9f3c')"))

    assert migrate(empty)[0] is None

    with reading(empty) as connection:
        check_schema(connection)
        theirs = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
        assert theirs == "9f3c"


def test_an_empty_database_is_refused_with_the_remedy(empty: sa.Engine) -> None:
    with reading(empty) as connection:
        assert current_revision(connection) is None
        with pytest.raises(SchemaOutdated, match="run `minutebook migrate`"):
            check_schema(connection)


def upgraded(engine: sa.Engine, branch: Branch, works_from: str) -> None:
    """Let the database be as a newer release left it."""
    with engine.begin() as connection:
        newer = f"UPDATE {branch.version_table} SET version_num = '9999_post_all'"
        connection.execute(sa.text(newer))
        key_values.set_value(connection, branch.works_from, works_from)


def test_the_schema_of_a_newer_release_is_used_as_long_as_this_one_works_with_it(
    engine: sa.Engine, branch: Branch
) -> None:
    upgraded(engine, branch, works_from=branch.head)

    before, after = migrate(engine)

    assert before == after
    assert "9999_post_all" in after
    with reading(engine) as connection:
        check_schema(connection)


def test_a_schema_that_lacks_what_this_release_uses_is_refused_and_not_migrated(
    engine: sa.Engine, branch: Branch
) -> None:
    upgraded(engine, branch, works_from="0002_pre_more")

    with pytest.raises(SchemaNewer, match="works with 0002_pre_more or newer, not with 0001_pre"):
        migrate(engine)
    with reading(engine) as connection, pytest.raises(SchemaNewer, match="use a newer release"):
        check_schema(connection)


def test_there_is_a_small_app_named_default_in_utc(engine: sa.Engine) -> None:
    row = fetched(engine, sa.select(small_apps)).one()

    assert (row.id, row.name, row.zone) == (1, "default", "UTC")
    assert row.created_at.tzinfo is not None


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"state": "lost"}, id="unknown_state"),
        pytest.param({"attempt": 0}, id="attempt_zero"),
        pytest.param({"progress": 1.5}, id="progress_over_one"),
        pytest.param({"state": "running"}, id="running_without_owner"),
    ],
)
def test_the_table_forbids_what_the_code_must_not_do(
    engine: sa.Engine, settings: Settings, values: dict[str, object]
) -> None:
    action = make_action(engine)
    id = make_operation(engine, action, datetime(2027, 1, 1, tzinfo=UTC))

    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.update(operations).where(operations.c.id == id).values(**values))


# The newest migration of each branch in the last release, 0.9.0.
LAST_RELEASE = "0001_pre_first_release"
NAME = re.compile(r"\d{4}_(pre|post)_[a-z0-9_]+")


def reflected(engine: sa.Engine) -> sa.MetaData:
    """Return the tables of a database, as they are."""
    found = sa.MetaData()
    found.reflect(engine)
    return found


def broken(before: sa.MetaData, after: sa.MetaData) -> Iterator[str]:
    """Yield what code that knows the first schema could not do with the second one."""
    for name, table in before.tables.items():
        if name not in after.tables:
            yield f"{name} is gone"
            continue
        yield from _broken_in(table, after.tables[name])


def _broken_in(before: sa.Table, after: sa.Table) -> Iterator[str]:
    for column in before.columns:
        if column.name not in after.columns:
            yield f"{column} is gone"
        elif str(after.columns[column.name].type) != str(column.type):
            yield f"{column} has another type"
    for column in after.columns:
        was = before.columns.get(column.name)
        is_required = not column.nullable and column.server_default is None
        if is_required and (was is None or was.nullable) and not column.primary_key:
            yield f"{column} is required"


def test_each_migration_says_in_its_name_when_it_runs(branch: Branch) -> None:
    scripts = ScriptDirectory.from_config(config_of(branch))
    names = [script.revision for script in scripts.walk_revisions()]

    assert [name for name in names if not NAME.fullmatch(name)] == []
    assert sorted(names, reverse=True) == names


def test_the_last_release_goes_on_with_the_schema_of_all_that_run_before_the_new_code(
    empty: sa.Engine,
) -> None:
    with empty.begin() as connection:
        for branch in branches():
            command.upgrade(config_of(branch, connection), LAST_RELEASE)
    before = reflected(empty)

    migrate(empty)

    assert list(broken(before, reflected(empty))) == []


def one(*columns: sa.Column[Any]) -> sa.MetaData:
    found = sa.MetaData()
    sa.Table("one", found, sa.Column("a", sa.Integer, primary_key=True), *columns)
    return found


def test_what_breaks_the_last_release_is_found() -> None:
    before = one(sa.Column("b", sa.Text))

    assert list(broken(before, sa.MetaData())) == ["one is gone"]
    assert list(broken(before, one())) == ["one.b is gone"]
    assert list(broken(before, one(sa.Column("b", sa.Integer)))) == ["one.b has another type"]
    for added, found in (
        (sa.Column("c", sa.Text, nullable=False), ["one.c is required"]),
        (sa.Column("c", sa.Text, nullable=False, server_default=""), []),
        (sa.Column("c", sa.Text), []),
    ):
        assert list(broken(before, one(sa.Column("b", sa.Text), added))) == found
