"""Expand first, contract one release later: what the last release writes and reads stays."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from models.store.schema import branches, config_of, migrate
from runtime.plug_ins import Branch

# The newest migration of each branch in the last release, 0.9.0.
LAST_RELEASE = "0001_pre_first_release"
NAME = re.compile(r"\d{4}_(pre|post)_[a-z0-9_]+")


def schema(engine: sa.Engine) -> sa.MetaData:
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


@pytest.mark.parametrize("branch", branches(), ids=lambda one: one.name or "kernel")
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
    before = schema(empty)

    migrate(empty)

    assert list(broken(before, schema(empty))) == []


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
