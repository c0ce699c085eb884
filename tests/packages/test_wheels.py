"""What is published: two distributions, each installed into an empty environment and used."""

import json
import zipfile
from pathlib import Path

import pytest

from tests import django_project
from tests.packages.environments import ROOT, Environment, Wheels, build_wheels

ROOMS = {
    *("broker", "cli", "cron", "data", "interop", "migrations", "models", "processes", "runtime"),
    *("scheduler", "scheduler_server.py", "services", "tasks", "web"),
}


def top_levels(wheel: Path) -> set[str]:
    """Return what a wheel puts into an environment, but for its own record."""
    with zipfile.ZipFile(wheel) as opened:
        names = {name.split("/")[0] for name in opened.namelist()}
    return {name for name in names if not name.endswith(".dist-info")}


def test_the_client_is_small_and_has_one_name(wheels: Wheels) -> None:
    assert top_levels(wheels.client) == {"minutebook"}
    assert wheels.client.stat().st_size < 300_000


def test_the_server_has_the_rest_and_requires_the_same_client(wheels: Wheels) -> None:
    assert top_levels(wheels.server) == ROOMS
    with zipfile.ZipFile(wheels.server) as opened:
        metadata = next(name for name in opened.namelist() if name.endswith("METADATA"))
        lines = opened.read(metadata).decode().splitlines()
    version = next(line.split()[-1] for line in lines if line.startswith("Version:"))
    assert f"Requires-Dist: minutebook-client=={version}" in lines


def test_all_files_beside_the_code_are_in_the_server(wheels: Wheels) -> None:
    kinds = {".html", ".txt", ".js", ".css", ".svg", ".toml", ".yaml"}
    with zipfile.ZipFile(wheels.server) as opened:
        packed = {name for name in opened.namelist() if ".dist-info/" not in name}
    here = {
        str(one.relative_to(ROOT))
        for room in ROOMS - {"scheduler_server.py"}
        for one in (ROOT / room).rglob("*")
        if one.suffix in {*kinds, ".py"} and one.is_file()
    }

    assert here - packed == set()


@pytest.mark.matrix
def test_the_same_source_gives_the_same_bytes(wheels: Wheels, tmp_path: Path) -> None:
    again = build_wheels(tmp_path)

    assert len(again.files) == 4
    assert again.client.read_bytes() == wheels.client.read_bytes()
    assert again.server.read_bytes() == wheels.server.read_bytes()


def test_the_pages_of_django_s_admin_are_in_the_client(
    application: Environment, tmp_path: Path
) -> None:
    with django_project.project(tmp_path, str(application.bin / "python")) as url:
        page = django_project.Browser(url, "admin").get(django_project.ACTIONS)

    assert "set MINUTEBOOK_URL and MINUTEBOOK_TOKEN" in django_project.text_of(page)


def test_the_command_runs_from_its_own_environment_in_any_folder(
    server: Environment, tmp_path: Path
) -> None:
    """The directory of an application has modules that are named as ours are."""
    for name in ("tasks", "models", "cli", "mail", "cron", "scheduler", "runtime", "broker", "web"):
        (tmp_path / f"{name}.py").write_text(f"OWNER = 'the user of {name}'\n")
    command = [str(server.bin / "minutebook"), "--home", str(tmp_path / "home")]

    made = server.run([*command, "migrate"], tmp_path)
    shown = server.run([*command, "--json", "step", "list"], tmp_path)

    assert made.returncode == 0, made.stderr
    assert '"celery_task"' in shown.stdout, shown.stderr


def test_the_demo_is_loaded_without_the_repository(server: Environment, tmp_path: Path) -> None:
    home = tmp_path / "home"
    code = f"""
from pathlib import Path
from data.demo import load
from services.installation import Installation
load(Installation(Path({str(home)!r})))
"""
    done = server.python(code, tmp_path)
    command = [str(server.bin / "minutebook"), "--home", str(home), "--app", "demo"]
    listed = server.run([*command, "--json", "action", "list"], tmp_path)

    assert done.returncode == 0, done.stderr
    assert {"weekly update", "every minute"} <= {one["name"] for one in json.loads(listed.stdout)}
    assert (home / "data" / "demo" / "a.csv").is_file()


def test_without_the_server_the_module_says_what_to_install(
    application: Environment, tmp_path: Path
) -> None:
    done = application.run(
        [str(application.bin / "python"), "-m", "minutebook", "status"], tmp_path
    )

    assert done.returncode == 1
    assert "docs/how-to/install.md" in done.stderr
    assert "Traceback" not in done.stderr
