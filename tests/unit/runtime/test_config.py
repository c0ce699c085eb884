"""Settings: where they come from, and how a wrong one is refused."""

import logging
from pathlib import Path

import pytest

from runtime.config import (
    LONGEST_SOCKET_PATH,
    InvalidSetting,
    load_settings,
    setting_paths,
    variable_of,
)


def test_defaults_need_nothing(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {})

    assert settings.uses_embedded_broker
    assert settings.effective_database_url == f"sqlite:///{tmp_path}/minutehand.db"
    assert settings.effective_data_root == tmp_path / "data"
    assert settings.scheduler.tick_seconds == 60


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("worker: {quick: 3, heavy: 4}\nbroker_url: redis://a/0\n")

    settings = load_settings(tmp_path, {"SCHED_WORKER_QUICK": "7"})

    assert (settings.worker.quick, settings.worker.heavy) == (7, 4)
    assert settings.effective_broker_url == "redis://a/0"


def test_the_home_folder_comes_from_the_environment(tmp_path: Path) -> None:
    assert load_settings(None, {"SCHED_HOME": str(tmp_path)}).home == tmp_path


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("SCHED_SCHEDULER_TICK_SECONDS", "7", "must be 5, 6, 10, 12, 15, 20, 30 or 60"),
        ("SCHED_SCHEDULER_TICK_SECONDS", "often", "valid integer"),
        ("SCHED_WORKER_LEASE_S", "20", "under three heartbeats of 10 s; set it to 30 or more"),
        ("SCHED_WORKER_QUICK", "0", "greater than or equal to 1"),
        ("SCHED_DATABASE_URL", "mysql://root@db/x", "write sqlite:///PATH or postgresql://"),
        ("SCHED_BROKER_URL", "kafka://x", "write redis://HOST:PORT/0"),
        ("SCHED_SMTP_URL", "mail.example.com", "write smtp://HOST:PORT"),
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


def test_all_wrong_settings_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, {"SCHED_WORKER_QUICK": "x", "SCHED_LOG_FORMAT": "xml"})

    assert len(str(refused.value).splitlines()) == 2


def test_a_wrong_value_in_the_file_names_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("worker: {quik: 3}\n")

    with pytest.raises(InvalidSetting, match=r"config\.yaml: worker\.quik"):
        load_settings(tmp_path, {})


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "worker: 3\n"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)

    with pytest.raises(InvalidSetting, match=r"config\.yaml"):
        load_settings(tmp_path, {"SCHED_WORKER_QUICK": "2"})


def test_a_password_is_never_in_an_error_or_in_print(tmp_path: Path) -> None:
    secret = "postgresql://u:hunter2@db/x"
    settings = load_settings(tmp_path, {"SCHED_DATABASE_URL": secret})

    assert "hunter2" not in repr(settings)
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, {"SCHED_BROKER_URL": "kafka://u:hunter2@x"})
    assert "hunter2" not in str(refused.value)


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
