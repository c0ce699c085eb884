"""The step without a database or a worker."""

from pathlib import Path

import pytest
from shop_steps.steps import CountFiles, count_files

from minutebook import StepFailed, StepOutcome
from minutebook.testing import make_context


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    return tmp_path


def test_the_count_is_returned_and_kept_in_the_checkpoint(inbox: Path) -> None:
    context = make_context(CountFiles(folder=str(inbox)), settings={"file_word": "letters"})

    result = count_files(context)

    assert (result.message, result.details) == ("3 letters", {"count": 3})
    assert context.checkpoint == {"count": 3}
    assert [one.message for one in context.reported] == ["a", "b", "c"]


def test_too_many_files_are_a_permanent_failure(inbox: Path) -> None:
    with pytest.raises(StepFailed, match="3 files are too many") as failed:
        count_files(make_context(CountFiles(folder=str(inbox), most=2)))

    assert failed.value.permanent


def test_a_missing_folder_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as failed:
        count_files(make_context(CountFiles(folder=str(tmp_path / "away"))))

    assert not failed.value.permanent


def test_the_step_stops_on_request(inbox: Path) -> None:
    result = count_files(make_context(CountFiles(folder=str(inbox)), stops_after=1))

    assert (result.outcome, result.message) == (StepOutcome.PARTIAL, "stopped at b")


def test_the_folder_must_be_absolute() -> None:
    with pytest.raises(ValueError, match="absolute path"):
        CountFiles(folder="inbox")
