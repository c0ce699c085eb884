"""Databases and home folders of before 0.9.0 are refused, and stay as they are."""

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile

import pytest
import sqlalchemy as sa

from models.store.schema import VERSION_TABLE, SchemaUnreleased, check_schema, migrate
from runtime.config import load_settings
from runtime.database import make_engine, reading
from tests.acceptance.warm import OURS, warm


@pytest.fixture
def ancient(empty: sa.Engine) -> sa.Engine:
    """A database of before the first release: Alembic's own table of versions, and our tables."""
    with empty.begin() as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES ('0022_pre_what')"))
        connection.execute(sa.text("CREATE TABLE action_cursor (action_uid VARCHAR(36))"))
    return empty


def test_a_database_of_before_the_first_release_is_refused(ancient: sa.Engine) -> None:
    remedy = "made before 0.9.0; .*Name an empty database, or another home folder"
    with pytest.raises(SchemaUnreleased, match=remedy):
        migrate(ancient)
    with reading(ancient) as connection, pytest.raises(SchemaUnreleased, match=remedy):
        check_schema(connection)

    with reading(ancient) as connection:
        assert set(sa.inspect(connection).get_table_names()) == {
            "action_cursor",
            "alembic_version",
        }


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
        assert sa.inspect(connection).has_table(VERSION_TABLE)


def test_a_home_folder_of_before_the_first_release_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "old name.db"
    with sqlite3.connect(old) as made:
        made.execute("CREATE TABLE action_cursor (action_uid VARCHAR(36))")
    engine = make_engine(load_settings(tmp_path, {}))

    with pytest.raises(SchemaUnreleased, match=r"before 0\.9\.0 \(old name\.db\); .* with --home"):
        migrate(engine)

    engine.dispose()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 300])
def test_another_file_of_that_kind_in_the_home_folder_is_no_matter(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "shop.db").write_bytes(content)
    engine = make_engine(load_settings(tmp_path, {}))

    assert migrate(engine)[0] is None

    engine.dispose()


def home_of(folder: Path, name: str) -> Path:
    """Return a home folder of before the first release, whose database has that name."""
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / name)) as made, made:
        made.execute("CREATE TABLE action_cursor (action_uid VARCHAR(36))")
    return folder


@pytest.mark.parametrize("name", ["other.db", "minutebook.db"])
@pytest.mark.parametrize("command", ["up", "web", "worker", "daemon", "status", "migrate"])
def test_each_command_refuses_it_with_one_line_and_makes_no_database(
    tmp_path: Path, command: str, name: str
) -> None:
    home = home_of(tmp_path / "home", name)
    command_line = [sys.executable, *OURS, "--home", str(home), command]
    environ = {**os.environ, "SCHED_WEB_PORT": "0"}

    with TemporaryFile("w+") as output:
        process = warm().start(command_line, environ, tmp_path, (output, output))
        code = process.wait(60)
        output.seek(0)
        said = output.read()

    refusals = [line for line in said.splitlines() if "was made before 0.9.0" in line]
    assert (code, len(refusals)) == (2, 1), said
    assert {file.name for file in home.glob("*.db")} == {name}
