"""docs/how-to/install.md: its commands, carried out in order with the wheels and an index."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages.environments import ROOT, Environment, Wheels, make_environment

PAGE = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)


def play(block: str, folder: Path, application: Environment) -> None:
    """Carry out a block in `folder`, with the application's environment active."""
    own = block.replace("/opt/minutebook", str(folder / "opt")).replace(
        "python3.11", sys.executable
    )
    subprocess.run(
        ["bash", "-ec", own], cwd=folder, check=True,
        env={**os.environ, "PATH": f"{application.bin}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip


@pytest.mark.matrix
def test_each_command_of_the_page_works(wheels: Wheels, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    for wheel in (wheels.client, wheels.server):
        (tmp_path / "dist" / wheel.name).symlink_to(wheel)
    application = make_environment(tmp_path / "application")
    subprocess.run([str(application.bin / "python"), "-m", "ensurepip"], check=True)
    (application.bin / "pip").symlink_to("pip3")

    for block in BLOCKS:
        if "make dist" not in block:
            play(block, tmp_path, application)

    server = Environment(tmp_path / "opt")
    extras = "import apprise, duckdb, uvloop"
    assert server.python(extras, tmp_path).returncode == 0
    assert server.run([str(server.bin / "minutebook"), "--version"], tmp_path).returncode == 0
    found = application.python("import minutebook; minutebook.Client, minutebook.step", tmp_path)
    assert found.returncode == 0, found.stderr
