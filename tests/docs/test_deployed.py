"""Each process that compose and Kubernetes start is one of our commands, with settings of ours."""

from pathlib import Path

import pytest

from runtime.config import load_settings, setting_paths
from runtime.sections.variables import variable_of
from tests.docs.command_lines import parse_minutebook
from tests.docs.deployed import Deployed, everything

URLS = {
    "database_url": "postgresql://minutebook:p@postgres/minutebook",
    "owner_url": "postgresql://owner:p@postgres/minutebook",
    "broker_url": "redis://:p@redis:6379/0",
    "smtp_url": "smtp://mail:1025",
}


@pytest.mark.parametrize("one", everything(), ids=lambda one: one.where)
def test_each_command_check_and_variable_is_one_of_ours(one: Deployed, tmp_path: Path) -> None:
    for program, *arguments in (one.command, *one.checks):
        assert program == "minutebook"
        parse_minutebook(arguments)
    assert set(one.paths) <= {"/healthz", "/readyz", "/healthz/ticks"}
    assert set(dict(one.environment)) <= {variable_of(path) for path in setting_paths()}
    for secret, url in URLS.items():
        (tmp_path / secret).write_text(url)
    settings = load_settings(tmp_path, one.settings(tmp_path))
    assert settings.database_url.get_secret_value().startswith("postgresql:")
