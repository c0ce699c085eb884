"""A type checker finds our types in the environment of whoever installs the wheels."""

from pathlib import Path

from tests.packages.environments import Environment

PROGRAM = """\
import minutebook
from celery import Celery

minutebook.follow(Celery("shop"))

@minutebook.step("close the day")
def close_the_day(context: minutebook.StepContext) -> minutebook.StepResult:
    reveal_type(context.occurrence_at)
    return minutebook.StepResult(message=context.subject or "")
"""
MISTAKES = """\
import minutebook

minutebook.follow("shop")

@minutebook.step("close the day", heavy="very")
def close_the_day(context: minutebook.StepContext) -> None:
    context.progress("half")
"""


def check(environment: Environment, folder: Path, program: str) -> list[str]:
    (folder / "shop.py").write_text(program)
    command = [str(environment.bin / "python"), "-m", "mypy", "--strict", "--no-error-summary"]
    done = environment.run([*command, "--cache-dir", str(folder / "cache"), "shop.py"], folder)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_typed_program_passes_a_strict_check(application: Environment, tmp_path: Path) -> None:
    found = check(application, tmp_path, PROGRAM)

    assert found == ['shop.py:8: note: Revealed type is "datetime.datetime"']


def test_a_wrong_argument_is_found(application: Environment, tmp_path: Path) -> None:
    found = check(application, tmp_path, MISTAKES)

    assert [line.split(":")[1] for line in found if ": error: " in line] == ["3", "5", "7"]
