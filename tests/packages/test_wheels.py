"""What is published: two distributions, each installed into an empty environment and used."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from runtime.extras import HOW_TO_INSTALL, extras
from tests import django_project
from tests.packages.environments import ROOT, Environment, Wheels, build_wheels, make_environment

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

    assert len(list(again.folder.iterdir())) == 4
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


WHEN = {"cron_rule": "0 4 * * *"}


@pytest.fixture(scope="module")
def bare(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = make_environment(tmp_path_factory.mktemp("bare") / "env")
    made.install(str(wheels.client), str(wheels.server))
    made.see_libraries(without=[module for modules in extras().values() for module in modules])
    return made


def minutebook(
    bare: Environment, folder: Path, *arguments: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of the server in a home folder of the test's own."""
    return bare.run([str(bare.bin / "minutebook"), *arguments], folder,
                    {"SCHED_HOME": str(folder / "home"), **settings})  # fmt: skip


def add(bare: Environment, folder: Path, step: str, **settings: str) -> str:
    document = folder / f"{step}.json"
    named = {"name": step, "operations": {step: True}, "when": WHEN, "recipients": "all"}
    document.write_text(json.dumps(named))
    return minutebook(bare, folder, "action", "add", str(document), **settings).stderr


def test_a_step_without_its_extra_is_refused_unless_the_workers_have_it(
    bare: Environment, tmp_path: Path
) -> None:
    assert minutebook(bare, tmp_path, "migrate").returncode == 0

    refused = add(bare, tmp_path, "refresh")
    assert "needs the extra 'data'" in refused
    assert HOW_TO_INSTALL in refused
    assert "extra" not in add(bare, tmp_path, "refresh", SCHED_WORKER_EXTRAS="data")
    report = minutebook(bare, tmp_path, "doctor").stdout
    assert "the extra 'data' is not installed, needed by refresh" in report


def test_what_needs_no_extra_runs_without_one(bare: Environment, tmp_path: Path) -> None:
    minutebook(bare, tmp_path, "migrate")
    code = """
from importlib import import_module
for name in ("data.steps.publish", "data.steps.send_email", "data.steps.send_execsum"):
    import_module(f"{name}.work")
for name in ("tasks.steps.maintenance", "tasks.steps.command"):
    import_module(f"{name}.work")
import cli.main, processes.daemon, processes.up, processes.web, processes.worker
from models.errors import UnknownStep
from tasks.registry import Registry
try:
    Registry().function("refresh")
except UnknownStep as error:
    print(error)
"""
    done = bare.python(code, tmp_path)

    assert "needs the extra 'data', which this worker lacks" in done.stdout, done.stderr


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


PROGRAM = """\
import minutebook
from celery import Celery

minutebook.follow(Celery("shop"))

@minutebook.step("close the day")
def close_the_day(context: minutebook.StepContext) -> minutebook.StepResult:
    reveal_type(context.occurrence_at)
    return minutebook.StepResult(message=context.subject or "")
"""
MISTAKES = """\
import minutebook

minutebook.follow("shop")

@minutebook.step("close the day", heavy="very")
def close_the_day(context: minutebook.StepContext) -> None:
    context.progress("half")
"""


def check(environment: Environment, folder: Path, program: str) -> list[str]:
    (folder / "shop.py").write_text(program)
    command = [str(environment.bin / "python"), "-m", "mypy", "--strict", "--no-error-summary"]
    done = environment.run([*command, "--cache-dir", str(folder / "cache"), "shop.py"], folder)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_typed_program_passes_a_strict_check(application: Environment, tmp_path: Path) -> None:
    found = check(application, tmp_path, PROGRAM)

    assert found == ['shop.py:8: note: Revealed type is "datetime.datetime"']


def test_a_wrong_argument_is_found(application: Environment, tmp_path: Path) -> None:
    found = check(application, tmp_path, MISTAKES)

    assert [line.split(":")[1] for line in found if ": error: " in line] == ["3", "5", "7"]
