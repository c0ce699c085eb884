"""The measures of the house count what they say."""

from pathlib import Path

import pytest

from benchmarks.size import counting
from benchmarks.size.counting import importers, is_product, lines_of_code

SOURCE = '''"""A module's docstring,

on three lines.
"""

# A comment.
import os


def one() -> str:
    """Return one."""
    return """a text
of two lines"""
'''


def test_docstrings_comments_and_blank_lines_are_no_code(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(SOURCE)

    assert lines_of_code(file) == 4


@pytest.mark.parametrize(("name", "expected"), [("models/job.py", True), ("tests/x.py", False)])
def test_tests_are_no_product(name: str, expected: bool) -> None:
    assert is_product(counting.ROOT / name) is expected


def test_a_file_knows_who_imports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "ROOT", tmp_path)
    house = tmp_path / "house"
    house.mkdir()
    texts = {"__init__": "", "a": "from house import b", "b": "", "c": "import house.b, os"}
    made = {name: house / f"{name}.py" for name in texts}
    for name, text in texts.items():
        made[name].write_text(text)

    found = importers(made.values())

    assert found[made["b"]] == {made["a"], made["c"]}
    assert made["a"] not in found
