"""An installation ticks, works and answers without the room of a plug-in, or of any."""

import os
import shutil
from pathlib import Path

import httpx
import pytest

from runtime.plug_ins import ROOMS
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, python
from tests.acceptance.web_door import client, start_web

# The environment has every room installed: an import must not find there what is left out.
WALL = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if any(name == room or name.startswith(room + ".") for room in {rooms!r}):
            raise ModuleNotFoundError(f"{{name}} is left out", name=name)

sys.meta_path.insert(0, Wall())
"""
NO_CACHE = shutil.ignore_patterns("__pycache__")


@pytest.fixture(params=[*ROOMS, "all of them"])
def left_out(
    request: pytest.FixtureRequest, installation: Installation, tmp_path: Path
) -> tuple[str, ...]:
    """The rooms whose code the processes of the installation lack."""
    rooms = ROOMS if request.param == "all of them" else (str(request.param),)
    for marker in ROOT.glob("*/py.typed"):
        shutil.copytree(marker.parent, tmp_path / marker.parent.name, ignore=NO_CACHE)
    shutil.copy(ROOT / "scheduler_server.py", tmp_path)
    for room in rooms:
        shutil.rmtree(tmp_path / room.replace(".", "/"))
    (tmp_path / "sitecustomize.py").write_text(WALL.format(rooms=rooms))
    path = os.pathsep.join((str(tmp_path), installation.processes.environment["PYTHONPATH"]))
    installation.processes.environment = {**installation.processes.environment, "PYTHONPATH": path}
    return rooms


def test_what_is_due_runs_and_every_door_opens(
    installation: Installation, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    due = installation.due_action()
    installation.action("pruning", operations={"maintenance": True})
    server = python("-P", str(tmp_path / "scheduler_server.py"), "--once")

    ticked = installation.processes.run(server)
    installation.worker(is_awaited=True)
    (operation,) = installation.awaited_rows(due, 1)
    installation.becomes(operation["id"], "success")
    ran = installation.cli("action", "run", "pruning", "--wait")
    named = installation.processes.run(installation.command("--help")).stdout
    _, address = start_web(installation)
    with client(installation, address) as (asking,):
        answers = {path: asking.get(path).status_code for path in ("/readyz", "/api/actions")}
        page = httpx.get(f"{address}/sign-in").status_code

    assert ticked.returncode == 0, ticked.stderr
    assert ran["state"] == "success", ran
    assert answers == {"/readyz": 204, "/api/actions": 200}
    assert page == (404 if "web.dashboard" in left_out else 200)
    assert ("  import " in named, "  template " in named) == (
        "moving" not in left_out, "data" not in left_out
    )  # fmt: skip
