"""docs/dev/dependencies.md: one line why for each direct dependency, and for no other."""

import re
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dev" / "dependencies.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

EXTRAS = [lines for name, lines in PROJECT["optional-dependencies"].items() if name != "dev"]


def test_each_direct_dependency_has_a_line_why() -> None:
    direct = {
        found[0]
        for line in (*PROJECT["dependencies"], *chain(*EXTRAS))
        if (found := re.match(r"[A-Za-z0-9_.-]+", line)) is not None
    }
    explained = dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", PAGE, re.M))

    assert set(explained) == direct
    assert all(explained.values())
