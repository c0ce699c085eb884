"""An installation ticks, works and answers without a plug-in, or without any."""

import os
import shutil
import sqlite3
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from runtime.plug_ins import GROUP
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, python

PLUG_INS = {one.name: one for one in entry_points(group=GROUP)}
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


@pytest.fixture(params=[*sorted(PLUG_INS), "all of them"])
def left_out(
    request: pytest.FixtureRequest, installation: Installation, tmp_path: Path
) -> tuple[str, ...]:
    """The plug-ins that the processes of the installation lack: their code, and their names."""
    names = tuple(PLUG_INS) if request.param == "all of them" else (str(request.param),)
    rooms = [PLUG_INS[name].module.removesuffix(".plug_in") for name in names]
    for marker in ROOT.glob("*/py.typed"):
        shutil.copytree(marker.parent, tmp_path / marker.parent.name, ignore=NO_CACHE)
    shutil.copy(ROOT / "scheduler_server.py", tmp_path)
    for room in rooms:
        shutil.rmtree(tmp_path / room.replace(".", "/"))
    (tmp_path / "sitecustomize.py").write_text(WALL.format(rooms=rooms))
    _install(tmp_path, [one for name, one in PLUG_INS.items() if name not in names])
    path = os.pathsep.join((str(tmp_path), installation.processes.environment["PYTHONPATH"]))
    installation.processes.environment["PYTHONPATH"] = path
    return names


def _install(folder: Path, plug_ins: list[EntryPoint]) -> None:
    """Write what is installed beside the code in a folder: it stands for the environment's."""
    installed = folder / "minutebook-0.9.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.4\nName: minutebook\nVersion: 0.9.0\n")
    lines = [f"{one.name} = {one.value}\n" for one in plug_ins]
    (installed / "entry_points.txt").write_text(f"[{GROUP}]\n{''.join(lines)}")


def _form(installation: Installation, address: str, *, is_there: bool) -> tuple[int, str]:
    """Return the status and the text of the page that makes an action, as an admin sees it."""
    with httpx.Client(base_url=address, headers={"Origin": address}) as browser:
        if is_there:
            link = installation.cli("token", "link", "--role", "admin")["url"]
            browser.post(urlsplit(link).path)
        shown = browser.get("/apps/default/new-action")
        return shown.status_code, shown.text


def test_what_is_due_runs_and_every_door_opens(
    installation: Installation, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    due = installation.due_action()
    installation.action("pruning", operations={"maintenance": True})
    server = python("-P", str(tmp_path / "scheduler_server.py"), "--once")

    ticked = installation.processes.run(server)
    installation.worker(is_awaited=True)
    operation = installation.awaited_row(due)
    installation.becomes(operation["id"], "success")
    ran = installation.cli("action", "run", "pruning", "--wait")
    named = installation.processes.run(installation.command("--help")).stdout
    _, address = installation.web()
    with installation.client(address) as asking:
        answers = {path: asking.get(path).status_code for path in ("/readyz", "/api/actions")}
        figures = asking.get("/metrics").text
        shown = asking.get("/api/apps/default").json()
    page, form = _form(installation, address, is_there="dashboard" not in left_out)

    assert ticked.returncode == 0, ticked.stderr
    assert ran["state"] == "success", ran
    assert answers == {"/readyz": 204, "/api/actions": 200}
    assert page == (404 if "dashboard" in left_out else 200)
    has_mail = not {"dashboard", "data"} & {*left_out}
    assert ("send_email" in form, "data-step" in form) == (has_mail, "dashboard" not in left_out)
    assert ("minutebook_deliveries" in figures, "data" in shown) == (("data" not in left_out),) * 2
    assert ("  import " in named, "  template " in named) == (
        "interop" not in left_out, "data" not in left_out
    )  # fmt: skip


def test_a_new_home_has_no_tables_of_what_is_left_out(
    installation: Installation, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    home, document = tmp_path / "home", tmp_path / "app.json"
    document.write_text('{"name": "shop", "domains": {}}')
    here = python("-P", "-m", "minutebook", "--home", str(home))
    own = {"SCHED_DATABASE_URL": ""}

    migrated = installation.processes.run([*here, "migrate"], own)
    applied = installation.processes.run([*here, "app", "apply", str(document)], own)
    examined = installation.processes.run([*here, "doctor"], own).stdout
    linked = installation.processes.run([*here, "token", "link", "--role", "admin"], own)
    with sqlite3.connect(home / "minutebook.db") as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}

    assert migrated.returncode == 0, migrated.stderr
    assert ("/sign-in/" in linked.stdout) == ("dashboard" not in left_out), linked.stderr
    assert linked.returncode == (2 if "dashboard" in left_out else 0), linked.stderr
    has_data = "data" not in left_out
    assert {"deliveries", "domains", "minutebook_data_version"} & tables == (
        {"deliveries", "domains", "minutebook_data_version"} if has_data else set()
    )
    assert applied.returncode == (0 if has_data else 2), applied.stderr
    assert has_data or ("snapshots" not in examined and "domains" in applied.stderr)
