"""The migrated schema is what `models.tables` says, on both stores, however often it is run."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
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
from runtime.config import Settings
from runtime.database import reading
from runtime.plug_ins import Branch
from tests.factories import make_action, make_operation
from tests.transactions import fetched


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


@pytest.mark.parametrize("branch", branches(), ids=lambda one: one.name or "kernel")
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


@pytest.fixture(params=branches(), ids=lambda one: one.name or "kernel")
def branch(request: pytest.FixtureRequest) -> Branch:
    found: Branch = request.param
    return found


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
    from datetime import UTC, datetime

    action = make_action(engine)
    id = make_operation(engine, action, datetime(2027, 1, 1, tzinfo=UTC))

    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.update(operations).where(operations.c.id == id).values(**values))
