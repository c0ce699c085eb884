"""What a user's own process loads of Minutebook: little, and nothing that collides."""

import subprocess
import sys
from pathlib import Path

OURS = [
    *("broker", "cli", "cron", "data", "interop", "migrations", "models", "processes", "runtime"),
    *("scheduler", "services", "tasks", "web"),
]
EXAMPLE = Path(__file__).parents[3] / "examples" / "from_celery_beat"


def loaded(code: str, folder: Path) -> set[str]:
    """Return the modules that a fresh process has after `code`, standing in `folder`."""
    told = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", told], cwd=folder, check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_the_face_is_light(tmp_path: Path) -> None:
    modules = loaded("import minutebook", tmp_path)

    assert not modules & {*OURS, "sqlalchemy", "celery", "kombu", "httpx", "jinja2"}
    assert "minutebook" in modules


def test_an_application_that_follows_keeps_its_own_tasks_and_models() -> None:
    code = "import followed, tasks, models\nprint(tasks.__file__, models.__file__)"

    modules = loaded(code, EXAMPLE)

    assert not modules & ({*OURS, "sqlalchemy"} - {"tasks", "models"})
    assert {str(EXAMPLE / "tasks.py"), str(EXAMPLE / "models.py")} <= modules
