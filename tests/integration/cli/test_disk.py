"""What the home folder takes of its disk is shown where the installation's state is."""

from pathlib import Path

from tests.integration.cli.conftest import Call


def test_status_shows_what_the_home_folder_takes_and_what_is_left(call: Call, home: Path) -> None:
    (home / "mail").mkdir()
    (home / "mail" / "1.eml").write_bytes(b"x" * 2**20)

    disk = call("status", "--json").json["disk"]

    assert disk["taken"]["mail"] >= 2**20
    assert 0 < disk["free"] <= disk["size"]
    assert " MiB in the home folder, " in call("status").out
