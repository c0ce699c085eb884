"""Modules of somebody else's: what each may do while it is imported, and what becomes of it."""

import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import minutebook
from models.errors import InvalidAction, UnknownStep
from tasks.registry import Registry
from tests.factories import STEPS
from tests.tables import table
from tests.unit.models.action.minimal import action, parse

Write = Callable[[str], str]
_numbers = count()
GOOD = """
import minutebook
from pydantic import BaseModel, field_validator

class Parameters(BaseModel):
    folder: str
    most: int = 5

    @field_validator("folder")
    @classmethod
    def _absolute(cls, value):
        if value == "odd":
            raise KeyError("odd")
        if value == "exit":
            raise SystemExit(5)
        if not value.startswith("/"):
            raise ValueError("write an absolute path")
        return value

@minutebook.step("NAME", parameters=Parameters, heavy=True, repeatable=False, sends=False)
def run(context):
    return None
"""


@pytest.fixture
def module(own_steps: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    path = list(sys.path)
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        name = f"somebodys_steps_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        return name

    yield write
    sys.path[:] = path


def good(name: str) -> str:
    return GOOD.replace("NAME", name)


@pytest.mark.parametrize(
    ("text", "error"), table(__file__, "a_broken_module_stops_nobody_but_its_users")
)
def test_a_broken_module_stops_nobody_but_its_users(module: Write, text: str, error: str) -> None:
    broken, sound = module(text), module(good("sound"))

    registry = Registry((broken, sound))

    assert error in registry.failed[broken]
    assert list(registry.failed) == [broken]
    assert "sound" in registry.steps
    with pytest.raises(UnknownStep, match=f"module {broken} failed to import"):
        registry.function("of_broken")


def test_what_a_module_registered_before_it_failed_is_taken_back(module: Write) -> None:
    broken = module(good("half") + "\nraise RuntimeError('then')")

    registry = Registry((broken,))

    assert "half" not in registry.steps


def test_what_a_module_prints_does_not_reach_stdout_and_the_order_of_its_path_stays(
    module: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = list(sys.path)

    Registry((module("import sys\nsys.path.insert(0, '/somewhere')\nprint('loud')"),))

    captured = capsys.readouterr()
    assert (captured.out, "loud" in captured.err) == ("", True)
    assert sys.path == [*path, "/somewhere"]


def test_two_packages_with_a_step_of_one_name_are_both_named(module: Write) -> None:
    first, second = module(good("taken")), module(good("taken"))

    registry = Registry((first, second))

    assert f"step 'taken' of {second} is registered by {first} already" in registry.failed[second]
    assert registry.function("taken").__module__ == first


def test_a_module_is_loaded_once_however_often_it_is_named(module: Write) -> None:
    name = module(good("once"))

    registry = Registry((name, name))

    assert registry.sources == {"once": f"SCHED_STEP_MODULES {name}"}
    # What a step is comes from its decorator.
    spec = registry.steps["once"]
    assert (spec.heavy, spec.repeatable, spec.sends) == (True, False, False)


@pytest.mark.parametrize(
    ("parameters", "problem"), table(__file__, "an_actions_parameters_are_checked_when_it_is_saved")
)
def test_an_actions_parameters_are_checked_when_it_is_saved(
    module: Write, parameters: dict[str, object], problem: str
) -> None:
    steps = Registry((module(good("own")),)).steps

    with pytest.raises(InvalidAction) as refused:
        parse(action(operations={"own": parameters}), steps=steps)

    assert problem in str(refused.value)


def test_an_unknown_step_is_told_with_what_could_not_be_loaded(module: Write) -> None:
    broken = module("raise RuntimeError('no licence')")
    steps = Registry((broken,)).steps

    with pytest.raises(InvalidAction) as refused:
        parse(action(operations={"own": True}), steps=steps)

    told = str(refused.value)
    assert "operations.own" in told
    assert f"module {broken} failed to import: RuntimeError: no licence" in told


def test_a_package_that_names_no_module_stops_nobody_but_its_users(
    module: Write, tmp_path: Path
) -> None:
    told = tmp_path / "shop_of_steps-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-of-steps\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[minutebook.steps]\nshop = shop-steps.steps\n")
    good = module(GOOD.replace("NAME", "good_one"))

    registry = Registry((good,), packages=True)

    assert "good_one" in registry.steps
    [failure] = registry.failures
    assert failure.startswith("module shop-steps.steps failed to import: ModuleNotFoundError")


@pytest.mark.parametrize("module", ["models", "models.action.steps", "models.absent", "data.mine"])
def test_a_module_named_as_one_of_ours_is_told_and_not_taken_for_it(module: str) -> None:
    failed = Registry((module,)).failed

    assert "of its own; give yours another name" in failed[module]
    assert repr(module.partition(".")[0]) in failed[module]


def test_a_step_of_a_user_cannot_replace_a_built_in_one(own_steps: None) -> None:
    @minutebook.step("maintenance", heavy=True)
    def own(context: minutebook.StepContext) -> None: ...

    registry = Registry()

    assert registry.steps["maintenance"] == STEPS["maintenance"]
    assert registry.function("maintenance").__module__ == "tasks.steps.maintenance"
    assert minutebook.registered_steps()["maintenance"].function is own


@pytest.mark.parametrize("name", ["celery_task", "job"])
def test_a_step_that_workers_of_others_run_fails_by_name(name: str) -> None:
    with pytest.raises(UnknownStep, match=f"this worker does not know the step '{name}'"):
        Registry().function(name)(None)
