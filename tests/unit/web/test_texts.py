"""The texts of the pages: each that is used exists, and each that exists is used."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from web.dashboard.texts import say, texts

ROOT = Path(__file__).parents[3]
HERE = ROOT / "web" / "dashboard"
SOURCES = "\n".join(
    path.read_text("utf-8")
    for path in (
        *HERE.rglob("*.py"),
        *HERE.glob("templates/*.html"),
        *(ROOT / "data" / "pages").rglob("*.py"),
        *(ROOT / "data" / "pages").rglob("*.html"),
    )
)
USED = re.compile(r"""say\(\s*f?["']([\w.]+)(["']|[{.]|_\{)""")
# Of keys that are put together: the part that is written.
BEGUN = re.compile(r"""say\(\s*f?["']([\w]+\.\w*)(?:["'] ~|\{)""")


def keys(found: Any = None, before: str = "") -> Iterator[str]:
    for key, value in (texts() if found is None else found).items():
        if isinstance(value, dict) and not {"one", "other"} <= set(value):
            yield from keys(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def test_each_text_is_used() -> None:
    whole = set(re.findall(r"""["']([a-z_]+\.[a-z_0-9]+)["']""", SOURCES))
    # A plug-in's icons stand beside its texts.
    begun = ("icons.", *BEGUN.findall(SOURCES))

    assert {key for key in keys() if key not in whole and not key.startswith(begun)} == set()


def test_each_text_that_is_used_exists() -> None:
    known = set(keys())

    assert {key for key, end in USED.findall(SOURCES) if end in "\"'" and "." in key} <= {
        *known,
        *BEGUN.findall(SOURCES),
    }


def test_a_count_chooses_the_text() -> None:
    assert say("change.done_run", count=1) == "It runs now."
    assert say("change.done_run", count=2) == "2 actions run now."
    with pytest.raises(KeyError):
        say("change.never")
