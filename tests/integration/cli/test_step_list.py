"""`minutebook step list` with a step whose parameters pydantic cannot describe."""

import json
import os
import subprocess
from pathlib import Path

from tests.acceptance.processes import python

BROKEN = """
import minutebook
from pydantic import BaseModel

class Unfinished(BaseModel):
    day: "Nowhere"

@minutebook.step("unfinished", parameters=Unfinished)
def unfinished(context): ...

@minutebook.step("finished")
def finished(context): ...
"""


def test_a_step_with_a_broken_model_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "half_done_steps.py").write_text(BROKEN)
    own = {"SCHED_STEP_MODULES": "half_done_steps", "PYTHONPATH": str(tmp_path)}
    command = python("-P", "-m", "minutebook", "--home", str(tmp_path), "--json", "step", "list")

    done = subprocess.run(
        command, env={**os.environ, **own}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    steps = {one["name"]: one["parameters"] for one in json.loads(done.stdout)["steps"]}
    assert steps["unfinished"] is None
    assert "finished" in steps
