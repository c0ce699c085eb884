"""deploy/systemd: right by systemd itself, confined, and true to our commands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from processes.up import STOP_MARGIN_S
from runtime.config import load_settings, setting_paths
from runtime.sections.variables import variable_of
from scheduler.loop import LONGEST_WAIT_S
from tests.docs.command_lines import parse_minutebook
from tests.docs.pages import text_of

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
PAGE = text_of("how-to/deploy/systemd")
PROGRAM = "/opt/minutebook/bin/minutebook"
INSTANCES = {"minutebook-worker@": "quick"}
# systemd's own figure, from 0 (confined) to 10; what is left is the network and unix sockets.
MOST_EXPOSED = 1.5

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def _lines(unit: Path, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit.read_text(encoding="utf-8"), re.M)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the units whose program is that of the tests, with one instance of each."""
    folder = tmp_path_factory.mktemp("units")
    program = str(Path(sys.executable).with_name("minutebook"))
    for unit in UNITS:
        name = unit.stem + INSTANCES.get(unit.stem, "") + ".service"
        (folder / name).write_text(unit.read_text().replace(PROGRAM, program))
    return folder


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_each_command_is_one_of_ours(unit: Path) -> None:
    (line,) = _lines(unit, "ExecStart")
    program, *arguments = line.replace("%i", "quick").split()

    assert program == PROGRAM
    parse_minutebook(arguments)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_each_variable_is_a_setting_and_each_url_a_credential(unit: Path, tmp_path: Path) -> None:
    environment = dict(line.split("=", 1) for line in _lines(unit, "Environment"))
    credentials = {line.split(":")[0] for line in _lines(unit, "LoadCredential")}

    assert set(environment) - {"SCHED_HOME"} <= {variable_of(path) for path in setting_paths()}
    named = {value.removeprefix("file:%d/") for value in environment.values() if "%d" in value}
    assert named == credentials == {"database_url", "broker_url", "smtp_url"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_stop_leaves_the_time_that_processes_need(unit: Path, tmp_path: Path) -> None:
    needed_s = load_settings(tmp_path, {}).worker.stop_grace_s + STOP_MARGIN_S

    assert all(float(one) > needed_s for one in _lines(unit, "TimeoutStopSec"))
    # Above what PostgreSQL may take to answer one statement, and many turns of the loop.
    assert all(float(one) > 6 * LONGEST_WAIT_S for one in _lines(unit, "WatchdogSec"))


@needs_systemd
def test_systemd_finds_no_fault(installed: Path) -> None:
    units = sorted(str(one) for one in installed.iterdir())
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_each_unit_is_confined(installed: Path) -> None:
    units = sorted(str(one) for one in installed.iterdir())
    most = f"--threshold={MOST_EXPOSED * 10:.0f}"
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", most, *units],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    exposed = re.findall(r"Overall exposure level for (\S+): ([\d.]+)", done.stdout)
    assert len(exposed) == len(units), done.stderr
    assert {name: level for name, level in exposed if float(level) > MOST_EXPOSED} == {}
    assert done.returncode == 0


@needs_systemd
@pytest.mark.skipif(os.getuid() != 0, reason="only root makes accounts")
def test_the_units_are_installed_by_the_commands_of_the_page(tmp_path: Path) -> None:
    block = re.search(r"^```text\n(install -d .*?)^```", PAGE, re.M | re.S)
    assert block is not None
    commands = block[1].replace(" /etc/", f" {tmp_path}/etc/")
    # Of a folder, not of this machine, whose systemd may not even run.
    for ours, there in {
        "systemd-sysusers": f"systemd-sysusers --root={tmp_path}",
        " && systemctl daemon-reload": "",
        "systemctl start minutebook-migrate\n": "",
        "systemctl enable --now": f"systemctl --root={tmp_path} enable",
    }.items():
        assert ours in commands
        commands = commands.replace(ours, there)
    for folder in ("sysusers.d", "systemd/system"):
        (tmp_path / "etc" / folder).mkdir(parents=True)

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=ROOT, capture_output=True,
        text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert re.search("^minutebook:", (tmp_path / "etc/passwd").read_text(), re.M)
    assert (tmp_path / "etc/minutebook").stat().st_mode & 0o777 == 0o700
    wanted = tmp_path / "etc/systemd/system/multi-user.target.wants"
    assert {one.name for one in wanted.iterdir()} == {
        "minutebook-daemon.service", "minutebook-web.service",
        *(f"minutebook-worker@{queue}.service" for queue in ("quick", "heavy", "default")),
    }  # fmt: skip
