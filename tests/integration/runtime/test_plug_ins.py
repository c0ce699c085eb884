"""What each process says of a plug-in that is installed and cannot be loaded."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.processes import ROOT, python


@pytest.mark.parametrize(
    ("module", "why", "command"),
    [
        (
            "reports.plug_in", "ModuleNotFoundError: No module named 'reports'",
            ("-m", "minutebook", "status"),
        ),
        (
            "broken_reports", "NameError: name 'report' is not defined",
            (str(ROOT / "scheduler_server.py"), "--once"),
        ),
    ],
    ids=["missing", "broken"],
)  # fmt: skip
def test_a_plug_in_that_cannot_be_loaded_is_named_in_one_line(
    tmp_path: Path, module: str, why: str, command: tuple[str, ...]
) -> None:
    (tmp_path / "broken_reports.py").write_text("report\n")
    installed = tmp_path / "reports-1.2.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.4\nName: reports\nVersion: 1.2\n")
    entry = f"[minutebook.plugins]\nreports = {module}:PLUG_IN\n"
    (installed / "entry_points.txt").write_text(entry)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))

    ended = subprocess.run(
        python("-P", *command),
        env={**os.environ, "PYTHONPATH": path, "SCHED_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )

    text = (
        f"error: the plug-in reports = {module}:PLUG_IN of reports 1.2 cannot be loaded ({why}); "
        "install that distribution again, or uninstall it\n"
    )
    assert (ended.returncode, ended.stderr) == (2, text)
