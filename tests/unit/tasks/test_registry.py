import pytest

import minutebook
from models.errors import UnknownStep
from tasks.registry import Registry
from tests.factories import STEPS


@pytest.mark.parametrize(
    "module",
    ["models", "tasks", "models.action.steps", "models.absent", "cron", "data.mine", "web.mine"],
)
def test_a_module_named_as_one_of_ours_is_told_and_not_taken_for_it(module: str) -> None:
    failed = Registry((module,)).failed

    assert "of its own; give yours another name" in failed[module]
    assert repr(module.partition(".")[0]) in failed[module]


def test_a_step_of_a_user_cannot_replace_a_built_in_one() -> None:
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
