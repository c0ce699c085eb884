import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_shell_is_under_forty_lines() -> None:
    assert len((ROOT / "scheduler_server.py").read_text().splitlines()) < 40


def test_the_daemon_never_loads_step_code() -> None:
    program = (
        "import sys, scheduler_server; from tasks.built_in import built_in_steps;"
        " built_in_steps(); print(*sorted(sys.modules))"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()

    rooms = ("fetch", "importing", "mail", "snapshots", "summary")
    forbidden = ("tasks.", *(f"data.{room}" for room in rooms))
    declared = {
        *("tasks.built_in", "tasks.step_context"),
        *("tasks.steps", "tasks.steps.celery_task", "tasks.steps.job"),
        *("tasks.steps.command", "tasks.steps.maintenance"),
    }
    assert {name for name in loaded if name.startswith(forbidden)} == declared
    assert [name for name in loaded if name.endswith(".work")] == []
    assert {"scheduler.tick", "data.steps.refresh"} <= set(loaded)
    assert not {"duckdb", "httpx", "jinja2", "fsspec"} & set(loaded)
    # With these, its memory and its start would grow for nothing.
    assert not {"alembic", "cli", "starlette", "services"} & set(loaded)
    assert not {"sqlalchemy.dialects.postgresql", "sqlalchemy.orm"} & set(loaded)
    assert len(loaded) <= 980
