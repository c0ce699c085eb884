"""What a fresh process loads of Minutebook, and what it leaves to others."""

import subprocess
import sys
from pathlib import Path

import pytest

import models
from models.action.document import parse_action
from models.parsing import ParseContext
from tests.factories import STEPS
from tests.unit.models.action.minimal import NOW
from tests.unit.models.action.test_action import BRIEF

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/from_celery_beat"
OURS = {
    *("broker", "cli", "cron", "data", "interop", "migrations", "models", "processes", "runtime"),
    *("scheduler", "services", "tasks", "web"),
}


def printed(code: str, folder: Path = ROOT) -> list[str]:
    """Return the words that a fresh process prints, standing in `folder`."""
    command = [sys.executable, "-c", f"import sys\n{code}"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.split()


def loaded(code: str, folder: Path = ROOT) -> set[str]:
    """Return the modules that a fresh process has after `code`."""
    return {*printed(f"{code}\nprint(*sys.modules)", folder)}


def test_the_shell_is_under_forty_lines() -> None:
    assert len((ROOT / "scheduler_server.py").read_text().splitlines()) < 40


def test_the_daemon_never_loads_step_code() -> None:
    found = loaded(
        "import scheduler_server; from tasks.built_in import built_in_steps; built_in_steps()"
    )

    rooms = ("fetch", "importing", "mail", "snapshots", "summary")
    forbidden = ("tasks.", *(f"data.{room}" for room in rooms))
    declared = {
        *("tasks.built_in", "tasks.step_context"),
        *("tasks.steps", "tasks.steps.celery_task", "tasks.steps.job"),
        *("tasks.steps.command", "tasks.steps.maintenance"),
    }
    assert {name for name in found if name.startswith(forbidden)} == declared
    assert [name for name in found if name.endswith(".work")] == []
    assert {"scheduler.tick", "data.steps.refresh"} <= found
    assert not {"duckdb", "httpx", "jinja2", "fsspec"} & found
    # With these, its memory and its start would grow for nothing.
    assert not {"alembic", "cli", "starlette", "services"} & found
    assert not {f"sqlalchemy.dialects.{name}" for name in ("postgresql", "sqlite")} & found
    assert "sqlalchemy.orm" not in found
    assert len(found) <= 980


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("tasks.bounded.child", set()),
        ("tasks.children.command", set()),
        ("tasks.children.apprise_message", set()),
        ("data.children.templates", set()),
        ("data.children.query", {"sqlalchemy"}),
        ("data.importing", set()),
    ],
)
def test_a_child_loads_no_library_that_it_does_not_need(module: str, needed: set[str]) -> None:
    assert loaded(f"import {module}") & {"pydantic", "sqlalchemy", "celery"} == needed


def test_the_face_is_light(tmp_path: Path) -> None:
    found = loaded("import minutebook", tmp_path)

    assert not found & {*OURS, "sqlalchemy", "celery", "kombu", "httpx", "jinja2"}
    assert "minutebook" in found


def test_an_application_that_follows_keeps_its_own_tasks_and_models() -> None:
    code = "import followed, tasks, models\nprint(tasks.__file__, models.__file__)"

    found = loaded(code, EXAMPLE)

    assert not found & ({*OURS, "sqlalchemy"} - {"tasks", "models"})
    assert {str(EXAMPLE / "tasks.py"), str(EXAMPLE / "models.py")} <= found


def test_what_tests_of_an_application_use_needs_no_pydantic() -> None:
    code = "sys.modules['pydantic'] = None; import minutebook.testing as t; t.make_operation()"

    assert "celery" not in loaded(code)


@pytest.mark.parametrize("package", ["models", "scheduler", "tasks"])
def test_a_package_loads_nothing_before_one_of_its_names_is_used(package: str) -> None:
    found = loaded(f"import {package}\nassert not hasattr({package}, 'nonsense')")

    assert not {"pydantic", "sqlalchemy", "celery"} & found
    assert [one for one in found if one.partition(".")[0] == package] == [package]


def test_a_document_is_read_without_a_context_as_it_is_saved() -> None:
    saved = parse_action(BRIEF, ParseContext("UTC", NOW, STEPS))
    read = f"ScheduledActionModel.model_validate({BRIEF!r}).operations.model_dump()"

    assert models.ScheduledActionModel.model_validate(BRIEF) == saved
    assert printed(f"from models import ScheduledActionModel\nprint(*{read})") == [
        "refresh",
        "publish",
        "send_execsum",
    ]
