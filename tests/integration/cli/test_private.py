"""What commands make is for their account alone, and what they say holds no secret."""

import stat
from pathlib import Path

import pytest

from cli.main import run
from processes import daemon
from runtime.config import load_settings


def open_to_others(home: Path) -> list[Path]:
    """Return the files of a home folder that other accounts can read."""
    return [path for path in home.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077]


@pytest.mark.parametrize("is_there", [True, False])
def test_the_database_is_for_its_account_alone(tmp_path: Path, is_there: bool) -> None:
    home = tmp_path / "home"
    if is_there:
        home.mkdir(mode=0o755)

    assert daemon.main(["--home", str(home), "--once"]) == 0
    assert run(["--home", str(home), "migrate"]) == 0

    assert (home / "minutebook.db").exists()
    assert open_to_others(home) == []
    assert stat.S_IMODE(home.stat().st_mode) == (0o755 if is_there else 0o700)


def test_a_password_in_the_query_is_not_logged(tmp_path: Path) -> None:
    url = "postgresql://app:hunter1@db/minutebook?password=hunter2&sslmode=require"

    shown = load_settings(tmp_path, {"SCHED_DATABASE_URL": url}).shown_database_url

    assert shown == "postgresql://app:***@db/minutebook"
