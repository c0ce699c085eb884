"""The server without its extras: what it refuses, and what it runs."""

import json
import subprocess
from pathlib import Path

import pytest

from runtime.extras import HOW_TO_INSTALL, extras
from tests.packages.environments import Environment, Wheels, make_environment

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
