import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from kombu.utils.url import parse_url

from data.settings import settings_in
from runtime.config import (
    LONGEST_SOCKET_PATH,
    InvalidSetting,
    check_sqlite,
    load_settings,
    setting_paths,
    unknown_variables,
)
from runtime.database import is_made, make_engine
from runtime.embedded import broker_command
from runtime.sections.variables import variable_of
from tests.tables import table


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("worker: {quick: 3, heavy: 4}\nbroker_url: redis://a/0\n")

    settings = load_settings(tmp_path, {"SCHED_WORKER_QUICK": "7"})

    assert (settings.worker.quick, settings.worker.heavy) == (7, 4)
    assert settings.effective_broker_url == "redis://a/0"


def test_the_url_of_a_server_may_be_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "database_url"
    secret.write_text("postgresql://minutebook:hidden@db/minutebook\n")

    settings = load_settings(tmp_path, {"SCHED_DATABASE_URL": f"file:{secret}"})

    assert settings.effective_database_url.password == "hidden"
    assert "hidden" not in repr(settings)
    with pytest.raises(InvalidSetting, match="SCHED_BROKER_URL: "):
        load_settings(tmp_path, {"SCHED_BROKER_URL": f"file:{tmp_path / 'none'}"})
    secret.write_text("ftp://minutebook:hidden@db/")
    with pytest.raises(InvalidSetting, match=r"^(?!.*hidden)SCHED_DATABASE_URL: "):
        load_settings(tmp_path, {"SCHED_DATABASE_URL": f"file:{secret}"})


@pytest.mark.parametrize(
    ("variable", "wrong", "remedy", "right"),
    table(__file__, "a_wrong_value_names_its_variable_and_the_remedy"),
)
def test_a_wrong_value_names_its_variable_and_the_remedy(
    tmp_path: Path, variable: str, wrong: str, remedy: str, right: str | None
) -> None:
    """`right`, where it is given, is what the remedy says, to the letter."""
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, {variable: wrong})

    assert str(refused.value).startswith(variable)
    assert remedy in str(refused.value)
    if right is not None:
        load_settings(tmp_path, {variable: right})


@pytest.mark.parametrize(
    ("wrong", "remedy", "right"), table(__file__, "the_remedy_for_the_file_is_accepted")
)
def test_the_remedy_for_the_file_is_accepted(
    tmp_path: Path, wrong: str, remedy: str, right: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(wrong)
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, {})

    assert str(refused.value) == f"{file}: {remedy}"
    file.write_text(right)
    load_settings(tmp_path, {})


@pytest.mark.parametrize(("variable", "value"), table(__file__, "a_right_value_is_taken"))
def test_a_right_value_is_taken(tmp_path: Path, variable: str, value: str) -> None:
    load_settings(tmp_path, {variable: value})


@pytest.mark.parametrize("text", ["? {}\n: 1\n", "- a\n", "a: [\n", "worker: 3\n"])
def test_a_file_that_is_no_mapping_in_plain_yaml_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)

    with pytest.raises(InvalidSetting, match=r"config\.yaml") as refused:
        load_settings(tmp_path, {"SCHED_WORKER_QUICK": "2"})
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SCHED_ALERT_WEBHOOK", "s3cret"),
        ("SCHED_BROKER_URL", "kafka://u:s3cret@x"),
        *(("SCHED_CONNECTIONS", one) for one in ("s3cret", '{"a": "s3cret@@"}', '["s3cret"]')),
        ("", "smtp_password: s3cret"),
        ("", "web: {token: s3cret}"),
    ],
)
def test_no_error_shows_a_value_that_may_be_secret(
    tmp_path: Path, variable: str, value: str
) -> None:
    """Of a variable, or of the file."""
    (tmp_path / "config.yaml").write_text("" if variable else value)
    named = variable or value.partition(":")[0]

    with pytest.raises(InvalidSetting, match=named) as refused:
        load_settings(tmp_path, {variable: value} if variable else {})

    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", ["a#b", "a%41b"])
def test_a_home_of_any_name_has_its_database_and_its_socket(tmp_path: Path, name: str) -> None:
    settings = load_settings(tmp_path / name, {})
    engine = make_engine(settings)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (id INTEGER)")

    assert [file.name for file in (tmp_path / name).glob("*.db")] == ["minutebook.db"]
    assert parse_url(settings.effective_broker_url)["virtual_host"] == str(
        settings.socket_path
    ).removeprefix("/")


def test_an_engine_makes_nothing_until_it_connects_and_then_a_private_home(tmp_path: Path) -> None:
    engine = make_engine(load_settings(tmp_path / "home", {}))
    assert not is_made(engine)
    assert not (tmp_path / "home").exists()

    with engine.connect():
        pass

    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


@pytest.fixture
def long_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose path is too long for a socket: that lies in a temporary folder."""
    monkeypatch.setattr("runtime.config.gettempdir", lambda: str(tmp_path))
    return tmp_path / ("h" * 100)


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda folder: folder.mkdir(mode=0o755), r"is open to other accounts \(0755, not 0700\)"),
        (lambda folder: folder.symlink_to("/tmp"), "is not a folder"),
    ],
)
def test_a_socket_folder_that_others_can_enter_is_refused(
    long_home: Path, make: Callable[[Path], object], fault: str
) -> None:
    make(load_settings(long_home, {}).socket_path.parent)

    with pytest.raises(InvalidSetting, match=f"SCHED_BROKER_URL: .* {fault}"):
        load_settings(long_home, {})


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_socket_folder_of_another_account_is_refused(long_home: Path) -> None:
    settings = load_settings(long_home, {})
    settings.socket_path.parent.mkdir(mode=0o700)
    os.chown(settings.socket_path.parent, 65534, 65534)

    with pytest.raises(InvalidSetting, match="belongs to the account 65534"):
        broker_command(settings)


def test_the_socket_folder_is_private_to_this_account(long_home: Path) -> None:
    settings = load_settings(long_home, {})

    broker_command(settings)

    for folder in (settings.home, settings.socket_path.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    load_settings(settings.home, {})


def test_an_sqlite_without_strict_tables_is_refused_with_the_remedy() -> None:
    check_sqlite((3, 37, 0))

    with pytest.raises(InvalidSetting, match=r"has SQLite 3\.36\.0; use .* SQLite 3\.37 or newer"):
        check_sqlite((3, 36, 0))


def test_all_wrong_settings_are_named_at_once_and_unknown_ones_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = {"SCHED_WORKER_QUICK": "x", "SCHED_LOG_FORMAT": "xml"}
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, wrong)
    with caplog.at_level(logging.WARNING):
        load_settings(tmp_path, {"SCHED_BROKR_URL": "redis://x/0"})

    assert len(str(refused.value).splitlines()) == 2
    assert "did you mean SCHED_BROKER_URL?" in caplog.text


def test_a_long_home_has_a_short_socket(tmp_path: Path) -> None:
    homes = (tmp_path / (letter * 100) for letter in "hhg")

    path, again, other = (load_settings(home, {}).socket_path for home in homes)

    assert len(str(path)) <= LONGEST_SOCKET_PATH
    assert path == again != other


def test_every_setting_has_one_variable() -> None:
    variables = [variable_of(path) for path in setting_paths()]

    assert len(set(variables)) == len(variables)
    assert "SCHED_SCHEDULER_TICK_SECONDS" in variables


def test_connections_come_from_the_file_or_as_json(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("connections: {a: 'env:A_URL', b: 'sqlite:///b.db'}\n")
    in_file = load_settings(tmp_path, {})
    by_variable = load_settings(tmp_path, {"SCHED_CONNECTIONS": '{"c": "postgresql://h/c"}'})

    assert list(settings_in(in_file).connections) == ["a", "b"]
    assert list(settings_in(by_variable).connections) == ["c"]
    # One engine is kept for each process and its settings.
    assert hash(in_file) != hash(by_variable)
    assert hash(in_file) == hash(load_settings(tmp_path, {}))


def test_a_value_with_a_name_may_stand_in_a_variable_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("connections: {c: 'env:C'}\n")
    variables = {"SCHED_CONNECTIONS_MY_SHOP": "env:A", "SCHED_CONNECTIONS_B": "env:B"}

    settings = load_settings(tmp_path, variables)

    assert sorted(settings_in(settings).connections) == ["b", "c", "my_shop"]
    assert unknown_variables(variables) == []
    assert hash(settings)
