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
    with pytest.raises(InvalidSetting, match="SCHED_BROKER_URL: "):
        load_settings(tmp_path, {"SCHED_BROKER_URL": f"file:{tmp_path / 'none'}"})
    secret.write_text("ftp://minutebook:hidden@db/")
    with pytest.raises(InvalidSetting, match=r"^(?!.*hidden)SCHED_DATABASE_URL: "):
        load_settings(tmp_path, {"SCHED_DATABASE_URL": f"file:{secret}"})


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("SCHED_SCHEDULER_TICK_SECONDS", "7", "must be 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60"),
        ("SCHED_WEB_PROXIES", "10.0.0.7,nginx", "'nginx' is not an address; write addresses or"),
        ("SCHED_WORKER_LEASE_S", "20", "under three heartbeats of 10 s; set it to 30 or more"),
        ("SCHED_WEB_SSO_HEADER", "X-Auth", "name its address in SCHED_WEB_PROXIES"),
        ("SCHED_WEB_SSO_HEADER", "X Auth", "such as X-Auth-Request-Email"),
        ("SCHED_WEB_SSO_ROLE_HEADER", "X-Role", "SCHED_WEB_SSO_HEADER"),
        ("SCHED_ALERT_MAIL", "ann@example.com, bob", "write one address"),
        ("SCHED_ALERT_QUIET_HOURS", "22-7", "such as 22:00-07:00"),
        ("SCHED_ALERT_QUIET_HOURS", "07:00-07:00", "two different times"),
        ("SCHED_ALERT_TIMEZONE", "Europe/Pariss", "write an IANA name"),
        ("SCHED_ALERT_WEBHOOK", "ftp://example.com/x", "write a URL such as https://"),
        ("SCHED_HOOK_TIMEOUT_S", "61", "write 60 or less"),
        ("SCHED_DATABASE_URL", "mysql://root@db/x", "write sqlite:///PATH or postgresql://"),
        ("SCHED_BROKER_URL", "kafka://x", "write redis://HOST:PORT/0"),
        ("SCHED_SMTP_URL", "mail.example.com", "write smtp://HOST:PORT"),
        ("SCHED_SMTP_URL", "smtp://h:abc", "write smtp://HOST:PORT"),
        ("SCHED_SMTP_URL", "smtp://", "write smtp://HOST:PORT"),
        ("SCHED_BROKER_URL", "redis://localhost:abc/0", "write redis://HOST:PORT/0"),
        ("SCHED_BROKER_URL", "redis://h:6379/notanumber", "write redis://HOST:PORT/0"),
        ("SCHED_BROKER_URL", "redis+socket://", "redis+socket:///PATH"),
        ("SCHED_BROKER_URL", "amqp://h:70000//", "amqp://HOST//"),
        ("SCHED_DATABASE_URL", "sqlite://", "in memory keeps nothing"),
        ("SCHED_DATABASE_URL", "sqlite:///file:x?mode=memory&uri=true", "in memory keeps nothing"),
        ("SCHED_DATABASE_URL", "postgresql+psycopg2://h/x", "write sqlite:///PATH"),
        ("SCHED_DATABASE_URL", "postgresql://h:abc/x", "write sqlite:///PATH"),
        ("SCHED_MAIL_SENDER", "minutebook", "write one address"),
        ("SCHED_MAIL_SENDER", "a@x.com, b@x.com", "write one address"),
        ("SCHED_MAIL_SENDER", "a@x.com\nBcc: b@x.com", "write one address"),
        ("SCHED_LOG_LEVEL", "LOUD", "'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
    ],
)
def test_a_wrong_value_names_its_variable_and_the_remedy(
    tmp_path: Path, variable: str, value: str, remedy: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, {variable: value})

    assert str(refused.value).startswith(variable)
    assert remedy in str(refused.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SCHED_SMTP_URL", "smtps://user:p%40ss@mail.example.com"),
        ("SCHED_BROKER_URL", "redis://:secret@h:6379/1?ssl_cert_reqs=required"),
        ("SCHED_BROKER_URL", "redis+socket:///run/redis.sock?virtual_host=2"),
        ("SCHED_BROKER_URL", "amqp://a:5672/jobs;amqp://b//"),
        ("SCHED_DATABASE_URL", "postgres://u:p@h:5432/x?sslmode=require"),
        ("SCHED_DATABASE_URL", "postgresql+psycopg://u:p%40@/x?host=/run/postgresql"),
        ("SCHED_MAIL_SENDER", "root@localhost"),
        ("SCHED_MAIL_SENDER", "Équipe <jobs@example.com>"),
    ],
)
def test_a_right_value_is_taken(tmp_path: Path, variable: str, value: str) -> None:
    load_settings(tmp_path, {variable: value})


@pytest.mark.parametrize(
    "text",
    [
        *("? {}\n: 1\n", "- a\n", "a: [\n", "worker: 3\n"),
    ],
)
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


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {"SCHED_DATABASE_URL": "postgresql://u:s3cret@db/x"})

    assert "s3cret" not in repr(settings)


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


def test_a_new_home_is_private_to_its_account(tmp_path: Path) -> None:
    with make_engine(load_settings(tmp_path / "home", {})).connect():
        pass

    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_an_engine_makes_nothing_until_it_connects(tmp_path: Path) -> None:
    engine = make_engine(load_settings(tmp_path / "home", {}))

    assert not is_made(engine)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda folder: folder.mkdir(mode=0o755), r"is open to other accounts \(0755, not 0700\)"),
        (lambda folder: folder.symlink_to("/tmp"), "is not a folder"),
    ],
)
def test_a_socket_folder_that_others_can_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object], fault: str
) -> None:
    monkeypatch.setattr("runtime.config.gettempdir", lambda: str(tmp_path))
    home = tmp_path / ("h" * 100)
    make(load_settings(home, {}).socket_path.parent)

    with pytest.raises(InvalidSetting, match=f"SCHED_BROKER_URL: .* {fault}"):
        load_settings(home, {})


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_socket_folder_of_another_account_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.config.gettempdir", lambda: str(tmp_path))
    settings = load_settings(tmp_path / ("h" * 100), {})
    settings.socket_path.parent.mkdir(mode=0o700)
    os.chown(settings.socket_path.parent, 65534, 65534)

    with pytest.raises(InvalidSetting, match="belongs to the account 65534"):
        broker_command(settings)


def test_the_socket_folder_is_private_to_this_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.config.gettempdir", lambda: str(tmp_path))
    settings = load_settings(tmp_path / ("h" * 100), {})

    broker_command(settings)

    for folder in (settings.home, settings.socket_path.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    load_settings(settings.home, {})


def test_an_sqlite_without_strict_tables_is_refused_with_the_remedy() -> None:
    check_sqlite((3, 37, 0))

    with pytest.raises(InvalidSetting, match=r"has SQLite 3\.36\.0; use .* SQLite 3\.37 or newer"):
        check_sqlite((3, 36, 0))


def test_all_wrong_settings_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, {"SCHED_WORKER_QUICK": "x", "SCHED_LOG_FORMAT": "xml"})

    assert len(str(refused.value).splitlines()) == 2


def test_an_unknown_variable_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        load_settings(tmp_path, {"SCHED_BROKR_URL": "redis://x/0"})

    assert "did you mean SCHED_BROKER_URL?" in caplog.text


def test_a_long_home_has_a_short_socket(tmp_path: Path) -> None:
    home = tmp_path / ("h" * 100)

    path = load_settings(home, {}).socket_path

    assert len(str(path)) <= LONGEST_SOCKET_PATH
    assert path == load_settings(home, {}).socket_path
    assert path != load_settings(tmp_path / ("g" * 100), {}).socket_path


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
