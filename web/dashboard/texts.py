"""The texts of the pages, from one file that can be translated."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from models.store.tokens import SIGNED_ON
from runtime.plug_ins import named

# The author of what a token or a session with a name does.
_NAMED = re.compile(r"(?:token|session|link) \w+(?: of token \w+)? \((.+)\)")
FILE = Path(__file__).with_name("texts.toml")


def say(key: str, **values: Any) -> str:
    """Return a text, `overview.title`, with its values; `count` chooses between one and other.

    Raises KeyError for a text that does not exist.
    """
    found: Any = texts()
    for part in key.split("."):
        found = found[part]
    if isinstance(found, dict):
        found = found["one" if values["count"] == 1 else "other"]
    return str(found).format(**values)


def step_name(name: str) -> str:
    """Return what people call a step; of a step of their own, its name in words."""
    return say(f"step.{name}") if name in texts()["step"] else name.replace("_", " ")


def person(author: str) -> str:
    """Return who made a change: the person whom its token, its session or a proxy names."""
    return _NAMED.sub(r"\1", author).removeprefix(SIGNED_ON)


@cache
def texts() -> dict[str, Any]:
    """Return all texts, with those of plug-ins."""
    made = tomllib.loads(FILE.read_text("utf-8"))
    for package in named("pages_in"):
        own = tomllib.loads((files(package) / "texts.toml").read_text("utf-8"))
        made |= {section: made.get(section, {}) | said for section, said in own.items()}
    return made
