"""Tables of what is given and expected, as data beside their test."""

import json
from pathlib import Path
from typing import Any

import pytest


def table(test_file: str, name: str) -> list[Any]:
    """Return the rows of `name.json` beside a test: of each, its id, or null, and its values."""
    text = Path(test_file).with_name(f"{name}.json").read_text(encoding="utf-8")
    return [pytest.param(*values, id=id) for id, *values in json.loads(text)]
