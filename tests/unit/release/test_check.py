"""The report of a check: a line for each finding, and an exit code."""

import pytest

from release.check import report
from release.findings import Finding


def test_all_is_well_without_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([Finding("the name is free"), Finding("versions agree")]) == 0
    assert capsys.readouterr().out == "ok the name is free\nok versions agree\n"


def test_one_problem_fails_the_whole_and_hides_no_other_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert report([Finding("it is taken", "choose another"), Finding("versions agree")]) == 1
    assert capsys.readouterr().out == "problem it is taken: choose another\nok versions agree\n"
