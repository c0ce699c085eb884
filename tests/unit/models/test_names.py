import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import models
import scheduler
import tasks
from models.action.document import parse_action
from models.parsing import ParseContext
from tests.factories import STEPS
from tests.unit.models.action.test_action import BRIEF
from tests.unit.scheduler.test_occurrence import SEVEN

ROOT = Path(__file__).parents[3]


def in_a_new_process(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def test_a_document_is_read_without_a_context_as_it_is_saved() -> None:
    saved = parse_action(BRIEF, ParseContext("UTC", SEVEN, STEPS))

    assert models.ScheduledActionModel.model_validate(BRIEF) == saved


def test_a_new_process_reads_a_document_without_a_context() -> None:
    code = (
        "from models import ScheduledActionModel\n"
        f"print(*ScheduledActionModel.model_validate({BRIEF!r}).operations.model_dump())"
    )

    assert in_a_new_process(code) == "refresh publish send_execsum\n"


@pytest.mark.parametrize("package", ["models", "scheduler", "tasks"])
def test_a_package_loads_nothing_before_one_of_its_names_is_used(package: str) -> None:
    code = f"import sys, {package}\nprint(*sys.modules)"

    loaded = in_a_new_process(code).split()

    assert not {"pydantic", "sqlalchemy", "celery"} & set(loaded)
    assert [one for one in loaded if one.partition(".")[0] == package] == [package]


@pytest.mark.parametrize("package", [models, scheduler, tasks])
def test_a_name_that_a_package_lacks_is_no_attribute(package: ModuleType) -> None:
    assert not hasattr(package, "nonsense")
