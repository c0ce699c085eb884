"""docs/how-to/move-from-redis-jobs.md names each variable of that scheduler, with ours."""

import re
from pathlib import Path

import pytest

from runtime.sections.counterparts import COUNTERPARTS
from runtime.sections.variables import PREFIX

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| (.+?) \| (.+?) \| (.+?) \|$",
    (ROOT / "docs/how-to/move-from-redis-jobs.md").read_text(encoding="utf-8"),
    re.M,
)


@pytest.mark.parametrize("variable", [one for one in COUNTERPARTS if one.startswith(PREFIX)])
def test_each_variable_stands_beside_its_counterpart(variable: str) -> None:
    (here,) = [ours for _, theirs, ours in ROWS if f"`{variable}`" in theirs]

    ours = {*re.findall(r"SCHED_\w+", COUNTERPARTS[variable])}
    assert ours == {*re.findall(r"SCHED_\w+", here)}
