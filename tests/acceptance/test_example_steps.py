"""The example package of steps, installed as a user installs it, run by a real worker."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, until

EXAMPLE = ROOT / "examples" / "steps"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example was installed, without a network."""
    source = tmp_path_factory.mktemp("source") / "steps"
    shutil.copytree(EXAMPLE, source)
    target = tmp_path_factory.mktemp("site")
    words = ["pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    command = [sys.executable, "-m", *words, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return target


def test_its_step_is_found_and_run_beside_a_module_that_is_broken(
    installation: Installation, site: Path, tmp_path: Path
) -> None:
    (site / "broken_steps_here.py").write_text("import sys\nsys.exit('no licence')\n")
    installation.processes.environment |= {
        "PYTHONPATH": str(site),
        "SCHED_STEP_MODULES": "broken_steps_here",
        "SCHED_WORKER_LEASE_S": "6",
    }
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for name in ("a", "b"):
        (inbox / name).touch()
    document = tmp_path / "count.json"
    document.write_text(
        '{"name": "count", "when": {"every": "PT1H"},'
        f' "operations": {{"count_files": {{"folder": "{inbox}"}}}}}}'
    )
    installation.cli("action", "add", str(document))
    worker = installation.worker(is_awaited=True)

    asked = installation.cli("action", "run", "count", "--wait")
    listed = installation.cli("step", "list")
    worker.said("broken_steps_here cannot be imported")

    shown = installation.cli("run", "show", asked["id"])
    assert (shown["state"], shown["steps"][0]["message"]) == ("success", "2 files")
    [own] = [one for one in listed["steps"] if one["name"] == "count_files"]
    assert own["from"] == "entry point 'shop' of shop-steps 1.0.0"
    assert own["parameters"]["properties"]["most"]["default"] == 100
    assert listed["failures"] == [
        {"module": "broken_steps_here", "error": "SystemExit: no licence"}
    ]

    def told() -> list[object]:
        return [one["step_failures"] for one in installation.cli("status")["workers"]]

    failures = {"broken_steps_here": "SystemExit: no licence"}
    until(lambda: told() == [failures], lambda: f"the worker tells it: {told()}")


def test_its_own_tests_pass_where_it_is_installed(site: Path) -> None:
    words = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*words, "--rootdir", str(EXAMPLE), "-c", "/dev/null", str(EXAMPLE / "tests")],
        env={"PYTHONPATH": str(site), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
