"""The agent's start, where it cannot serve its worker."""

import json
import os
import subprocess
from pathlib import Path

from runtime.supervisor import PARENT
from tests.acceptance.processes import python


def test_an_agent_that_finds_an_empty_database_names_it_and_the_settings(tmp_path: Path) -> None:
    told = json.dumps({"name": "shop@host", "queues": [], "follows": [], "pid": 1}) + "\n"
    command = ("-P", "-m", "minutebook", "--home", str(tmp_path))

    done = subprocess.run(
        python(*command, "agent", "--socket", str(tmp_path / "socket")),
        env={**os.environ, PARENT: str(os.getpid())},
        input=told,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert (
        f"SCHED_HOME and SCHED_DATABASE_URL lead its agent to sqlite:///{tmp_path}" in done.stderr
    )
